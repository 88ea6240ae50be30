"""WordCount as a pipeline (Flink-ER 4.2): lines are split into words, and words are counted."""

from pathlib import Path

from tidegate.apps.application import Application, Settings, Verdict
from tidegate.apps.numbered import NumberedFlow, behind, on_arrivals
from tidegate.apps.stretching import Stretched, stretched_map
from tidegate.apps.wordcount import lines, split
from tidegate.apps.wordcount.options import MEANINGS, wordcount_options
from tidegate.apps.wordcount.reference import compare, expected_counts
from tidegate.pipelines.functions import count
from tidegate.pipelines.stream import Stream
from tidegate.spark.state.read import read_state

NAME, SPLIT, COUNT = "wordcount", "split", "count"
TASKS = (1, 24)
SHARDS = 128
STRETCHED_S = {SPLIT: 0.002, COUNT: 0.0015}
"""Modelled, as the paper prints none: per line and per word."""


def flow(source: Stream, settings: Settings, directory: Path) -> NumberedFlow:
    """The operators behind a source of numbered rows. The answers are the state of the count."""
    options = wordcount_options(settings.extra)
    row_s = settings.times(STRETCHED_S)
    written = source.map(lines.line_map(options, settings.seed), lines.SCHEMA, name="lines")
    found = written.map(
        stretched_map(split.split, row_s[SPLIT]), split.SCHEMA, name=SPLIT, tasks=TASKS
    )
    if settings.cut:
        found = found.cut("words")
    counted = found.keyed(
        COUNT, Stretched(count(), row_s[COUNT]), key="word", shards=SHARDS, tasks=TASKS
    )

    def verify(checkpoint: str, arrived: int) -> Verdict:
        expected = expected_counts(arrived, options, settings.seed)
        return compare(read_state(checkpoint, COUNT), expected, arrived)

    return NumberedFlow(counted, verify)


APPLICATION = Application(
    name=NAME,
    paper="Flink-ER 4.2",
    about="how often each word occurs in a stream of lines",
    rate="ramp:50-400/60",
    target="3 seconds",
    cores=(2, 12),
    operators=(SPLIT, COUNT),
    stretched_s=STRETCHED_S,
    most_tasks=lambda _: dict.fromkeys((SPLIT, COUNT), TASKS[1]),
    build=on_arrivals(NAME, flow),
    behind=behind(flow),
    options=MEANINGS,
    read_options=wordcount_options,
)
