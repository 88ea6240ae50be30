"""The counts of all windows by a plain loop over the texts, and the comparison with a run.

Texts are split by Python, and a window is the sum of the intervals that it consists of. What is
shared with the operators is which characters end a hashtag (`extract.PUNCTUATION`), and how Arrow's
times are read.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from tidegate.apps.application import Verdict
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.hashtags.extract import PUNCTUATION
from tidegate.apps.hashtags.options import HashtagOptions
from tidegate.apps.hashtags.tweets import HashtagTweets
from tidegate.pipelines.functions.times import microseconds_of

Counts = Counter[tuple[str, int]]
"""How often a hashtag occurs in the window that ends at this microsecond."""
_ROWS_AT_A_TIME = 65_536


def expected_counts(texts: Iterable[tuple[int, str]], options: HashtagOptions) -> Counts:
    """The counts of all windows with these tweets: (microsecond, text)."""
    every_us = options.every_s * 1_000_000
    intervals: Counts = Counter()
    for at_us, text in texts:
        for part in text.split():
            hashtag = part[1:].rstrip(PUNCTUATION).lower()
            if part.startswith("#") and hashtag:
                intervals[hashtag, at_us // every_us] += 1
    windows: Counts = Counter()
    for (hashtag, interval), count in intervals.items():
        for later in range(1, options.window_s // options.every_s + 1):
            windows[hashtag, (interval + later) * every_us] += count
    return windows


def texts_of(tweets: HashtagTweets, arrived: int) -> Iterable[tuple[int, str]]:
    """The first `arrived` tweets."""
    for first in range(0, arrived, _ROWS_AT_A_TIME):
        end = min(first + _ROWS_AT_A_TIME, arrived)
        rows = tweets.table(np.arange(first, end, dtype=np.int64))
        at_us, _ = microseconds_of(rows["at"])
        yield from zip(at_us.tolist(), rows["text"].to_pylist(), strict=True)


def judged(
    tweets: HashtagTweets,
    arrived: int,
    emitted: pa.Table | None,
    state: pa.Table,
    progress: EventProgress,
) -> Verdict:
    """Compare the counts that were emitted, and those of windows that are still open."""
    expected = expected_counts(texts_of(tweets, arrived), tweets.options)
    told, twice = _counted(emitted)
    still_open, again = _counted(state)
    newest_us = int(tweets.rate.arrival_us(np.array([arrived - 1]))[0]) if arrived else 0
    faults = []
    if wrong := _differing(told | still_open, expected):
        faults.append(f"{wrong} counts are not those of a plain loop over the texts")
    if twice or again or told.keys() & still_open.keys():
        faults.append("some windows were counted twice")
    if early := sum(end_us > newest_us for _, end_us in told):
        faults.append(f"{early} counts were emitted before their window was over")
    ends = {end_us for _, end_us in told}
    faults += progress.faults(
        (end_us for _, end_us in expected),
        (end_us for _, end_us in still_open),
        every_us=tweets.options.every_s * 1_000_000,
        size_us=tweets.options.window_s * 1_000_000,
    )
    return Verdict(
        correct=not faults,
        said=f"{len(expected):,} counts of hashtags in windows of {arrived:,} tweets: "
        + ("; ".join(faults) if faults else "as by a plain loop over the texts"),
        figures={
            "tweets": float(arrived),
            "counts": float(len(expected)),
            "emitted": float(len(told)),
            "windows": float(len(ends)),
            "hashtags": float(len({hashtag for hashtag, _ in expected})),
        },
    )


def _counted(rows: pa.Table | None) -> tuple[Counts, int]:
    """The counts in rows of the operator or of its state, and how many are there twice."""
    if rows is None:
        return Counter(), 0
    end_us, _ = microseconds_of(rows["window_end"])
    keys = zip(rows["hashtag"].to_pylist(), end_us.tolist(), strict=True)
    found = Counter(dict(zip(keys, rows["count"].to_pylist(), strict=True)))
    return found, rows.num_rows - len(found)


def _differing(found: Counts, expected: Counts) -> int:
    return sum(found[one] != expected[one] for one in found.keys() | expected.keys())
