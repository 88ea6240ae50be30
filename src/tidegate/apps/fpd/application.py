"""Frequent pattern detection as a pipeline (DRS section V-A.2 and fig. 5), with its loop."""

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.apps.application import Application, BuiltApplication, Settings, Verdict
from tidegate.apps.collected import Collected
from tidegate.apps.fpd.detector import Detector, messages, news
from tidegate.apps.fpd.generator import CANDIDATE, generate, weights
from tidegate.apps.fpd.itemsets import Ints, candidates, decoded
from tidegate.apps.fpd.options import MEANINGS, POISSON, FpdOptions
from tidegate.apps.fpd.reference import Change, StateRow, by_brute_force, faults
from tidegate.apps.fpd.reporter import CHANGE, report
from tidegate.apps.fpd.tweets import NONE, Tweets
from tidegate.apps.fpd.window import Changes, even_times, poisson_times, write_profile
from tidegate.apps.stretching import Stretched, stretched_map
from tidegate.pipelines.stream import pipeline
from tidegate.spark.sources.arrivals import arrivals
from tidegate.spark.state.read import read_state

OPERATORS = ("generate", "detect", "report")
MOST_TASKS = 24
TASKS = (1, MOST_TASKS)
SHARDS = 128
STRETCHED_S = {"generate": 1 / 68, "detect": 1 / 122, "report": 1 / 86}
"""Modelled, as the paper prints none: with these the best split of 22 cores is the paper's 6:13:3
(`examples/fpd.toml`)."""


def build(spark: SparkSession, settings: Settings, directory: Path) -> BuiltApplication:
    """The pipeline, with a verifier of its records and of what its reporter wrote."""
    options = FpdOptions.of(settings.extra)
    tweets = Tweets.of_window(options.window, settings.seed)
    changes = changes_of(settings, options)
    row_s = settings.times(STRETCHED_S)

    def source(name: str, times_ms: Ints, sign: int) -> DataFrame:
        profile = write_profile(times_ms, directory / f"{name}.csv")
        rows = arrivals(spark, profile, seconds=settings.seconds, partitions=1)
        return rows.select("seq", "timestamp", F.lit(sign).alias("sign"))

    entering = source("entering", changes.entering_ms, 1)
    leaving = source("leaving", changes.leaving_ms, -1)
    first = pipeline("fpd", entering, arrival="timestamp")
    flow = first.merge(first.source(leaving, name="leaving", arrival="timestamp")).map(
        stretched_map(
            generate(tweets, options.largest),
            row_s["generate"],
            weights(tweets, options.largest),
        ),
        CANDIDATE,
        name="generate",
        tasks=TASKS,
    )
    if settings.cut:
        flow = flow.cut("candidates")
    back = flow.loop("back")
    detected = flow.merge(back).keyed(
        "detect",
        Stretched(Detector(options.threshold), row_s["detect"]),
        key="itemset",
        shards=SHARDS,
        tasks=TASKS,
    )
    detected.map(messages, CANDIDATE, name="messages").feed(back)
    told = detected.map(news, name="news")
    if settings.cut:
        told = told.cut("changes")
    collected = Collected(directory)
    told.map(stretched_map(report, row_s["report"]), CHANGE, name="report", tasks=TASKS).to(
        collected
    )
    return BuiltApplication(
        stream=flow,
        verify=lambda checkpoint: verdict(
            tweets, changes, options, read_state(checkpoint, "detect"), collected.rows()
        ),
    )


def changes_of(settings: Settings, options: FpdOptions) -> Changes:
    """When tweets enter and leave the window in a run."""
    times_ms = (
        poisson_times(settings.rate, settings.seconds, settings.seed)
        if options.arrivals == POISSON
        else even_times(settings.rate, settings.seconds)
    )
    return Changes.of(times_ms, options.window)


def verdict(
    tweets: Tweets,
    changes: Changes,
    options: FpdOptions,
    state: pa.Table,
    reported: pa.Table | None,
) -> Verdict:
    """Compare the records and the reported changes with brute force over the last window."""
    inside = changes.at_the_end
    matrix = tweets.words(np.arange(inside.start, inside.stop, dtype=np.int64))
    expected = by_brute_force(
        (tuple(word for word in row if word != NONE) for row in matrix.tolist()),
        options.threshold,
        options.largest,
    )
    found = {
        decoded(row["itemset"]): StateRow(row["count"], row["above"], row["maximal"])
        for row in state.to_pylist()
    }
    written = [
        Change(row["at_us"], tuple(row["pattern"]), row["maximal"])
        for row in ([] if reported is None else reported.to_pylist())
    ]
    wrong = faults(expected, found, written)
    compared = (
        f"{len(expected.counts):,} itemsets and {len(expected.maximal):,} maximal frequent patterns"
        f" in a window of {len(inside):,} tweets, and the result that {len(written):,} reported"
        " changes lead to"
    )
    generated = _generated(tweets, changes, options)
    return Verdict(
        correct=not wrong,
        said=f"{compared}: " + ("; ".join(wrong) if wrong else "as by brute force"),
        figures={
            "itemsets": len(expected.counts),
            "patterns": len(expected.maximal),
            "reported": len(written),
            "candidates_per_tweet": round(generated / max(_rows(changes), 1), 3),
            "reported_per_candidate": round(len(written) / max(generated, 1), 4),
        },
    )


def _rows(changes: Changes) -> int:
    return len(changes.entering_ms) + len(changes.leaving_ms)


def _generated(tweets: Tweets, changes: Changes, options: FpdOptions) -> int:
    """How many candidates all rows have."""
    total = 0
    for rows in (len(changes.entering_ms), len(changes.leaving_ms)):
        length = (tweets.words(np.arange(rows, dtype=np.int64)) != NONE).sum(axis=1)
        counts = np.bincount(length).tolist()
        total += sum(rows * candidates(words, options.largest) for words, rows in enumerate(counts))
    return total


APPLICATION = Application(
    name="fpd",
    paper="DRS V-A.2",
    about="maximal frequent patterns of the tweets in a sliding window, with a loop",
    rate="constant:320",
    target="5 seconds",
    cores=(3, 22),
    operators=OPERATORS,
    stretched_s=STRETCHED_S,
    most_tasks=lambda _: dict.fromkeys(OPERATORS, MOST_TASKS),
    build=build,
    options=MEANINGS,
    read_options=FpdOptions.of,
)
