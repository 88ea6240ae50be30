"""Grep: how many lines of a text have a pattern.

`find` keeps the lines that have it, and `count` counts them. Here as in Intel's benchmark the key
of `count` is the same for all lines, so one task counts.
"""

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.application import Settings, Verdict
from tidegate.apps.option_values import options_of
from tidegate.apps.storm_benchmark.options import GREP_MEANINGS, GrepOptions
from tidegate.apps.storm_benchmark.reference import matching
from tidegate.apps.storm_benchmark.sentences import Sentences
from tidegate.apps.storm_benchmark.topology import Answers, Lines, Topology, arrived, mapped
from tidegate.apps.storm_benchmark.verdict import compared, counted
from tidegate.apps.stretching import Stretched
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.functions import count
from tidegate.pipelines.stream import Stream

NAME = "grep"
STRETCHED_S = {"find": 500e-6, "count": 0.0}
grep_options = partial(options_of, GrepOptions, NAME)


def find(pattern: str) -> Callable[[pa.Table], Derived]:
    """A map that keeps the lines with the pattern, and of each of them only the pattern."""

    def found(rows: pa.Table) -> Derived:
        has = pc.match_substring_regex(rows["line"], pattern)
        said = pa.repeat(pa.scalar(pattern), pc.sum(has).as_py() or 0)
        return Derived(pa.table({"pattern": said}), has)

    return found


def _lines(settings: Settings) -> Lines:
    return Sentences(settings.seed, grep_options(settings.extra).words).lines


def _operators(lines: Stream, settings: Settings) -> Stream:
    row_s = settings.times(STRETCHED_S)
    pattern = grep_options(settings.extra).pattern
    found = mapped(lines, "find", find(pattern), "pattern string", row_s["find"])
    if settings.cut:
        found = found.cut("found")
    counter = Stretched(count(), row_s["count"])
    return found.keyed("count", counter, key="pattern", shards=1, tasks=1)


def _check(settings: Settings, answers: Answers) -> Verdict:
    lines = _lines(settings)
    expected = matching(arrived(lines, settings), grep_options(settings.extra).pattern)
    return compared(counted(answers.state, "pattern"), expected, "counts", lines, settings)


TOPOLOGY = Topology(
    name=NAME,
    stretched_s=STRETCHED_S,
    lines=_lines,
    operators=_operators,
    check=_check,
    keyed="count",
    emits=False,
    single=("count",),
)
APPLICATION = TOPOLOGY.application(
    about="how many lines of a text have a pattern",
    rate="sine:6000+-4000/40",
    options=GREP_MEANINGS,
    read_options=grep_options,
)
