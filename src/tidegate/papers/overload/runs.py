"""Runs of the queries for the figures: what is run, with which time per row, and how much is left.

In the paper an engine copes with 80 queries and not with 100. Tidegate works on columns, and a row
costs a query half a microsecond, so that two cores carry 1,000 queries. So a row is stretched here:
in each query it takes `ROW_S` by waiting, and two cores carry about as many queries as the paper's
engine. What their real work alone does is shown beside it, with ten times as many queries.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pyspark.sql import SparkSession

from tidegate.apps.planetlab.load import PERIOD_S
from tidegate.apps.planetlab.options import query_numbers
from tidegate.apps.planetlab.outcome import Planetlab
from tidegate.apps.planetlab.run import WARM_S, run_planetlab
from tidegate.errors import AskedWrongly
from tidegate.papers.figure import Asked
from tidegate.papers.sessions import spark_on
from tidegate.units import format_duration, parse_duration
from tidegate.workload.cpu import Series, cpu_series, read_cpu_series

CORES = 2
MASTER = f"local[{CORES}]"
ROW_S = 18e-6
"""What a row takes in each query, by waiting: two tasks carry the mean load of some 90 queries."""
WHOLE_S = WARM_S + PERIOD_S
"""After the warm-up, one period of the rates is judged."""
QUICK_S = 25.0
_START_AND_STOP_S = 8.0
_WARM_UP_S = 20.0
OPTIONS = {
    "series": "CSV of CPU use (sample,node0,...); default: generated",
    "row-time": f"what a row takes in each query, by waiting; default {format_duration(ROW_S)}",
    "queries": "run only these numbers of queries, such as 120,200",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRun:
    """One run."""

    queries: int
    target_s: float
    shed: bool
    stretched: bool = True
    """Whether a row takes its time by waiting; if not, it is as fast as it is."""
    seconds: float = WHOLE_S
    more_s: float = 0.0
    """How long its last batch may take after that."""

    @property
    def words(self) -> str:
        """What is run, in a few words."""
        held = f"target {self.target_s:g} s" if self.shed else "no shedding"
        return f"{self.queries} queries, {held}{'' if self.stretched else ', real work only'}"


@dataclass(frozen=True, slots=True, eq=False)
class AskedRuns:
    """What the options of a figure ask for."""

    series: Series
    row_s: float
    only: tuple[int, ...]
    """Only these numbers of queries; empty: all."""

    @classmethod
    def of(cls, asked: Asked) -> "AskedRuns":
        """Read the options; wrong ones are refused before anything starts."""
        path, numbers = asked.extra.get("series"), asked.extra.get("queries")
        return cls(
            cpu_series() if path is None else read_cpu_series(path),
            parse_duration(asked.extra["row-time"]) if "row-time" in asked.extra else ROW_S,
            () if numbers is None else query_numbers(numbers),
        )

    def chosen(self, cases: Sequence[QueryRun]) -> list[QueryRun]:
        """Those of the cases that are asked for."""
        found = [one for one in cases if not self.only or one.queries in self.only]
        if not found:
            known = ", ".join(str(number) for number in sorted({one.queries for one in cases}))
            raise AskedWrongly(
                f"no run of this figure has {', '.join(map(str, self.only))} queries; give some of"
                f" {known}"
            )
        return found

    @property
    def note(self) -> str:
        """What a row costs, for the notes of a figure."""
        return (
            f"A row takes {format_duration(self.row_s)} in each query by waiting (stretched), on"
            f" {CORES} tasks, where it is not said that there is real work only."
        )


def all_of(asked: Asked, cases: Sequence[QueryRun]) -> tuple[list[tuple[QueryRun, Planetlab]], str]:
    """Run what is asked for of a figure's runs; and a note on what a row costs."""
    wanted = AskedRuns.of(asked)
    chosen = wanted.chosen(cases)
    with spark_on(MASTER) as spark:
        return _ran(spark, wanted, chosen, asked), wanted.note


def left_s(cases: Sequence[QueryRun]) -> float:
    """About how long some runs take."""
    return sum(one.seconds + one.more_s + _START_AND_STOP_S for one in cases)


def _ran(
    spark: SparkSession, wanted: AskedRuns, cases: Sequence[QueryRun], asked: Asked
) -> list[tuple[QueryRun, Planetlab]]:
    """Run all cases, one after the other, after a short run that gets Spark warm."""
    total_s = left_s(cases) + _WARM_UP_S
    asked.progress.expect(total_s, takes_s=total_s)
    asked.progress.step("warming up", _WARM_UP_S)
    _run(spark, wanted, QueryRun(queries=100, target_s=2.0, shed=True, seconds=_WARM_UP_S))
    found = []
    for place, case in enumerate(cases, start=1):
        asked.progress.step(f"run {place} of {len(cases)}: {case.words}", left_s([case]))
        one = _run(spark, wanted, case)
        found.append((case, one))
        asked.say(f"{case.words}: {in_short(one)}")
    return found


def _run(spark: SparkSession, wanted: AskedRuns, case: QueryRun) -> Planetlab:
    return run_planetlab(
        spark,
        wanted.series,
        queries=case.queries,
        seconds=case.seconds,
        target_s=case.target_s,
        shed=case.shed,
        cores=CORES,
        row_s=wanted.row_s if case.stretched else None,
    )


def in_short(one: Planetlab) -> str:
    """What a run found, in one line."""
    cpu = "" if one.cpu_percent is None else f", CPU {one.cpu_percent:.0f} %"
    answers = "answers right" if one.verdict.correct else f"WRONG: {one.verdict.said}"
    return f"mean {one.mean_latency_s:.2f} s, {one.kept_share:.0%} kept{cpu}, {answers}"


def wrong_runs(found: Sequence[tuple[QueryRun, Planetlab]]) -> list[str]:
    """What the checks of some runs found wrong."""
    return [f"{case.words}: {one.verdict.said}" for case, one in found if not one.verdict.correct]


def miscounted(found: Sequence[tuple[QueryRun, Planetlab]]) -> int:
    """Queries of all runs whose rows are not those that were offered: kept or shed, each once."""
    return sum(
        int(
            np.count_nonzero(np.asarray(one.kept_per_query) != one.counts.offered - one.counts.shed)
        )
        for _, one in found
    )
