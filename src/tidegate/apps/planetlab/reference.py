"""The averages by a plain computation over the rows that were kept, and the comparison with a run.

The rows are made again from their numbers, so that a wrong time, node or weight is found as well.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.apps.application import Verdict
from tidegate.apps.planetlab.load import readings_of, sent_rows
from tidegate.apps.planetlab.queries import WINDOW_S
from tidegate.control.row_counts import SourceCount
from tidegate.pipelines.functions.times import microseconds_of
from tidegate.pipelines.shedding import WEIGHT
from tidegate.workload.cpu import Series

_WINDOW_US = WINDOW_S * 1_000_000
_CLOSE = 1e-9
"""Averages may differ by rounding, because the sums are taken in another order."""


@dataclass(frozen=True, slots=True, eq=False)
class WindowAverages:
    """The average of every second, oldest first."""

    window: npt.NDArray[np.int64]
    """The number of the second since the epoch."""
    rows: npt.NDArray[np.int64]
    cpu: npt.NDArray[np.float64]

    @classmethod
    def of(
        cls,
        at_us: npt.NDArray[np.int64],
        cpu: npt.NDArray[np.float64],
        weight: npt.NDArray[np.float64],
    ) -> "WindowAverages":
        """The weighted averages of rows."""
        window, place = np.unique(at_us // _WINDOW_US, return_inverse=True)
        total = np.bincount(place, weights=weight * cpu, minlength=len(window))
        weights = np.bincount(place, weights=weight, minlength=len(window))
        return cls(window, np.bincount(place, minlength=len(window)), total / weights)


@dataclass(frozen=True, slots=True, eq=False)
class QueryAnswers:
    """What the queries answered last for every second, by query and second."""

    query: npt.NDArray[np.int64]
    window: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    cpu: npt.NDArray[np.float64]
    error: npt.NDArray[np.float64]
    """The standard error that was stated."""

    @classmethod
    def of(cls, emitted: pa.Table | None) -> "QueryAnswers":
        """The last one of each, from all that was emitted, oldest first."""
        if emitted is None:
            none = np.empty(0, dtype=np.int64)
            return cls(none, none, none, np.empty(0), np.empty(0))
        query = emitted["query"].to_numpy()
        window = microseconds_of(emitted["window_start"])[0] // _WINDOW_US
        order = np.lexsort((np.arange(len(query)), window, query))
        last = np.flatnonzero(
            np.append((np.diff(query[order]) != 0) | (np.diff(window[order]) != 0), len(query) > 0)
        )
        chosen = order[last]
        return cls(
            query[chosen],
            window[chosen],
            *(emitted[name].to_numpy()[chosen] for name in ("rows", "cpu", "cpu_se")),
        )

    def rows_per_query(self, queries: int) -> npt.NDArray[np.int64]:
        """Rows that each query has averaged."""
        return np.bincount(self.query, weights=self.rows, minlength=queries).astype(np.int64)


def judged(
    series: Series,
    seed: int,
    queries: int,
    counts: SourceCount,
    kept: pa.Table | None,
    answers: QueryAnswers,
) -> Verdict:
    """Compare every average of every query, and every query's count of rows, with the kept rows."""
    if kept is None:
        empty = counts.kept == 0 and len(answers.query) == 0
        return Verdict(correct=empty, said="no row was kept" if empty else "no kept row was noted")
    nodes = series.shape[1]
    sent = sent_rows(nodes, seed, counts.offered)
    number = kept["seq"].to_numpy()
    at_us = kept["timestamp"].combine_chunks().cast(pa.int64()).to_numpy()
    faults = []
    if len(number) != counts.kept or int(number.max()) >= counts.offered:
        faults.append(f"{len(number):,} rows were kept, and {counts.kept:,} counted")
        return Verdict(correct=False, said="; ".join(faults))
    start_us = int(at_us[0] - sent.arrival_us[number[0]])
    if not (
        np.array_equal(at_us, start_us + sent.arrival_us[number])
        and np.array_equal(kept["key"].to_numpy(), sent.key[number])
    ):
        faults.append("some kept rows are not those that were sent")
    expected = WindowAverages.of(
        at_us, readings_of(series, at_us, sent.key[number]), kept[WEIGHT].to_numpy()
    )
    wrong = _differing(answers, expected, queries)
    if wrong:
        faults.append(f"{wrong:,} of {queries * len(expected.window):,} averages differ")
    lost = answers.rows_per_query(queries)
    if off := int(np.count_nonzero(lost != counts.kept)):
        faults.append(f"{off} queries have not averaged {counts.kept:,} rows")
    all_us = start_us + sent.arrival_us
    true = WindowAverages.of(all_us, readings_of(series, all_us, sent.key), np.ones(len(all_us)))
    return Verdict(
        correct=not faults,
        said="; ".join(faults)
        or f"{queries * len(expected.window):,} averages of {queries} queries equal those of the"
        f" {counts.kept:,} kept rows, and each query counts all of them",
        figures=_off_truth(answers, true),
    )


def _differing(answers: QueryAnswers, expected: WindowAverages, queries: int) -> int:
    """Averages that are wrong, missing or too many."""
    if len(answers.query) != queries * len(expected.window):
        return abs(len(answers.query) - queries * len(expected.window)) or 1
    right = np.array_equal(
        answers.query, np.repeat(np.arange(queries), len(expected.window))
    ) and np.array_equal(answers.window, np.tile(expected.window, queries))
    if not right:
        return len(answers.query)
    same = np.isclose(answers.cpu, np.tile(expected.cpu, queries), rtol=_CLOSE, atol=_CLOSE)
    counted = answers.rows == np.tile(expected.rows, queries)
    return int(np.count_nonzero(~(same & counted)))


def _off_truth(answers: QueryAnswers, true: WindowAverages) -> dict[str, float]:
    """How far the answers are from the averages of all rows, those that were shed included."""
    first = answers.query == 0
    place = np.searchsorted(true.window, answers.window[first])
    found = place < len(true.window)
    off = np.abs(answers.cpu[first][found] - true.cpu[place[found]])
    if not len(off):
        return {}
    within = off <= 1.96 * answers.error[first][found] + _CLOSE
    return {
        "mean_error_points": float(off.mean()),
        "within_stated_error": float(within.mean()),
    }
