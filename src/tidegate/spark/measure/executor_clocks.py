"""How far the clocks of executors are from the driver's, at least, by the times of their tasks.

A task begins after its batch and ends before it. One that says otherwise has another clock. This
gives a bound that holds whatever the network did, which is close where batches are short.
"""

from collections.abc import Sequence
from dataclasses import replace

from tidegate.control.measurement import ExecutorMeasurement
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.result import BatchResult


def with_clocks(
    executors: Sequence[ExecutorMeasurement], results: Sequence[BatchResult]
) -> tuple[ExecutorMeasurement, ...]:
    """The executors with what the tasks of these batches tell of their clocks."""
    bounds: dict[str, tuple[float, float]] = {}
    for result in results:
        for report in result.reports:
            low, high = _bounds(report, result)
            known = bounds.get(report.executor, (low, high))
            bounds[report.executor] = max(low, known[0]), min(high, known[1])
    measured = {one.name: one for one in executors}
    return tuple(
        replace(measured.get(name) or ExecutorMeasurement(name=name), clock_ahead_s=_ahead(*found))
        for name, found in sorted(bounds.items())
    )


def _bounds(report: TaskReport, result: BatchResult) -> tuple[float, float]:
    """The least and the most seconds that the clock can be ahead."""
    ended_s = report.started_s + report.busy_s
    return ended_s - result.ended_s, report.started_s - result.started_s


def _ahead(low: float, high: float) -> float:
    if low > 0.0:
        return round(low, 3)
    return round(high, 3) if high < 0.0 else 0.0
