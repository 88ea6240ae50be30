"""Extractor and count without Spark: the counts of a plain loop, however the stream is cut."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.keyed_by_hand import KeyedByHand
from tidegate.apps.event_progress import EventProgress
from tidegate.apps.hashtags.application import counted
from tidegate.apps.hashtags.extract import hashtags
from tidegate.apps.hashtags.options import HashtagOptions
from tidegate.apps.hashtags.reference import expected_counts, judged
from tidegate.apps.hashtags.tweets import HashtagTweets
from tidegate.workload.profile import constant

OPTIONS = HashtagOptions(window_s=6, every_s=2, hashtags=40, trend_s=4.0)
TWEETS = HashtagTweets(constant(100), OPTIONS, seed=2)
TIME = pa.timestamp("us", "UTC")
HASHTAG = pa.schema({"hashtag": pa.string(), "at": TIME})

part = st.text(alphabet="ab#A,!", max_size=5)
texts = st.lists(st.lists(part, max_size=6).map(" ".join), max_size=12)


@given(texts)
def test_hashtags_are_those_that_a_plain_loop_finds(given_texts) -> None:
    rows = pa.table({"at": pa.array(range(len(given_texts)), TIME), "text": given_texts})
    rows = rows.set_column(1, "text", rows["text"].cast(pa.string()))
    made = hashtags(rows)
    found = sorted(zip(made.parents.tolist(), made.rows["hashtag"].to_pylist(), strict=True))
    assert found == sorted(
        (number, name)
        for number, text in enumerate(given_texts)
        for one in text.split()
        if one.startswith("#") and (name := one[1:].rstrip(".,:;!?").lower())
    )
    assert made.rows["at"].cast(pa.int64()).to_pylist() == made.parents.tolist()


class Counting:
    """The two operators with their state, and what was emitted."""

    def __init__(self) -> None:
        self.count = KeyedByHand(counted(OPTIONS), HASHTAG, "hashtag")
        self.emitted: list[pa.Table] = []
        self.arrived = 0

    def take(self, rows: int) -> None:
        made = TWEETS.table(np.arange(self.arrived, self.arrived + rows))
        self.arrived += rows
        self.emitted.append(self.count.run(hashtags(made).rows))

    def result(self) -> tuple[pa.Table, pa.Table, EventProgress]:
        return pa.concat_tables(self.emitted), self.count.state, self.count.progress


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 900), min_size=1, max_size=6))
def test_cuts_do_not_matter(cuts: list[int]) -> None:
    run = Counting()
    for rows in cuts:
        run.take(rows)
    verdict = judged(TWEETS, run.arrived, *run.result())
    assert verdict.correct, verdict.said
    assert run.count.late_rows == 0


def test_windows_are_emitted_when_they_are_over() -> None:
    run = Counting()
    for _ in range(12):
        run.take(100)  # a second each
    verdict = judged(TWEETS, run.arrived, *run.result())
    assert verdict.correct, verdict.said
    assert verdict.figures["windows"] == 5  # those that end after 2, 4, 6, 8 and 10 seconds
    assert verdict.figures["emitted"] > 100


def test_counts_by_hand() -> None:
    given_texts = [(0, "#a b"), (1_999_999, "#A, #b"), (2_000_000, "#a"), (7_000_000, "##")]
    assert expected_counts(given_texts, HashtagOptions(window_s=4, every_s=2)) == {
        ("a", 2_000_000): 2,
        ("a", 4_000_000): 3,
        ("a", 6_000_000): 1,
        ("b", 2_000_000): 1,
        ("b", 4_000_000): 1,
        ("#", 8_000_000): 1,
        ("#", 10_000_000): 1,
    }


def test_the_verdict_notices() -> None:
    run = Counting()
    for _ in range(6):
        run.take(200)
    emitted, state, progress = run.result()
    count = emitted.schema.get_field_index("count")
    more = emitted.set_column(count, "count", pa.array(emitted["count"].to_numpy() + 1))
    wrong = [
        (None, state),
        (emitted.slice(1), state),
        (emitted, state.slice(1)),
        (more, state),
        (pa.concat_tables([emitted, emitted.slice(0, 1)]), state),
        (pa.concat_tables([emitted, state.select(emitted.column_names)]), state.slice(0, 0)),
    ]
    assert judged(TWEETS, run.arrived, emitted, state, progress).correct
    assert [judged(TWEETS, run.arrived, *one, progress).correct for one in wrong] == [False] * 6


def test_the_verdict_notices_that_nothing_is_ever_emitted() -> None:
    run = Counting()
    run.take(1200)
    _, state, progress = run.result()
    assert judged(TWEETS, run.arrived, None, state, progress).correct, "all came in one batch"
    several = EventProgress(progress.newest_us, 9_000_000)
    verdict = judged(TWEETS, run.arrived, None, state, several)
    assert not verdict.correct
    assert "not closed at 4 times" in verdict.said, "after 2, 4, 6 and 8 seconds"
    still = EventProgress(1_000_000, None)
    assert "event time came to 1 s" in judged(TWEETS, run.arrived, None, state, still).said
