"""What a micro-batch that still runs has told of its arrivals.

A batch is known in full when it is over, and by then the next one has begun with the old number of
tasks. But the operators that read the sources are done long before the batch is, and their tasks
have reported when the rows arrived: a surge seen there is answered one whole batch earlier.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.control.learning.sojourn import SLOT_US, Stamps, merged
from tidegate.control.learning.traces import weighted_stamps, weights
from tidegate.pipelines.graph import Segment
from tidegate.pipelines.walks import mixed_readers, timed_readers
from tidegate.spark.batch.plan import BatchPlan
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.batch.segment import SegmentRun


@dataclass(frozen=True, slots=True, eq=False)
class RunningArrivals:
    """The arrivals of a batch whose end Spark has not told yet."""

    batch_id: int
    offered: Stamps
    """When its rows arrived, those that it sheds included."""
    kept: int
    """Rows that it did not shed."""

    @property
    def newest_us(self) -> int:
        """The last arrival, since the epoch; 0 without any."""
        return self.offered.newest_us


def running_arrivals(part: SegmentRun) -> RunningArrivals | None:
    """The arrivals of the batch that runs; None until every task that reads a source reported."""
    plan = part.running
    if plan is None:
        return None
    reports = part.reports.so_far(plan.batch_id)
    for name in timed_readers(part.segment):
        entry = plan.operators.get(name)
        # A map without tasks of its own runs where its rows are, in an unknown number of tasks.
        if entry is None or len({r.task for r in reports if r.operator == name}) < entry.tasks:
            return None
    return _told(part.segment, plan, reports)


def arrivals_of(part: SegmentRun, result: BatchResult) -> RunningArrivals | None:
    """The arrivals of a batch that has run, but whose duration Spark has not told yet."""
    return _told(part.segment, result.plan, result.reports)


def _told(
    segment: Segment, plan: BatchPlan, reports: Sequence[TaskReport]
) -> RunningArrivals | None:
    mixed = mixed_readers(segment)
    offered = offered_stamps(reports, mixed)
    readers = timed_readers(segment) - mixed
    kept = sum(report.rows_in for report in reports if report.operator in readers)
    for report in reports:
        if report.operator in mixed and report.born is not None:
            kept += report.sampled * int(weights(report.born).sum())
    if offered is None:
        return None
    return RunningArrivals(plan.batch_id, until(offered, plan.at_us), kept)


def kept_stamps(reports: Sequence[TaskReport], mixed: frozenset[str]) -> list[Stamps]:
    """When the rows that a batch worked on arrived from outside.

    `mixed` are the readers whose rows come from channels as well: their traces tell the arrivals.
    """
    told = [report.stamps for report in reports if report.stamps is not None]
    traced = [
        weighted_stamps(report.born)
        for report in reports
        if report.operator in mixed and report.born is not None
    ]
    return told + traced


def offered_stamps(
    reports: Sequence[TaskReport], mixed: frozenset[str] = frozenset()
) -> Stamps | None:
    """When a batch's rows arrived, those that it shed included; None without any."""
    shed = [r.shed.stamps for r in reports if r.shed is not None and r.shed.stamps is not None]
    stamps = merged(shed or kept_stamps(reports, mixed))
    if not stamps.rows:
        return None
    every = max(report.sampled for report in reports)
    return Stamps(stamps.slots, stamps.counts * every, stamps.beyond_us * every)


def since(stamps: Stamps, from_us: int) -> Stamps:
    """The part of the stamps from a time on; the sum within slots is left out."""
    fresh = stamps.slots >= from_us // SLOT_US
    return Stamps(stamps.slots[fresh], stamps.counts[fresh], 0)


def until(stamps: Stamps, at_us: int) -> Stamps:
    """The stamps of a batch that was planned at this time: all its rows had arrived by then.

    A timestamp in the future is a wrong clock of who made the row. As it is, it would make the
    newest second, in which the rate is counted, one that has hardly any rows in it.
    """
    last = at_us // SLOT_US
    there = int(np.searchsorted(stamps.slots, last, side="right"))
    if there == len(stamps.slots):
        return stamps
    counts = stamps.counts[:there].copy()
    ahead = int(stamps.counts[there:].sum())
    if there and stamps.slots[there - 1] == last:
        counts[-1] += ahead
        return Stamps(stamps.slots[:there], counts, stamps.beyond_us)
    slots = np.append(stamps.slots[:there], last)
    return Stamps(slots, np.append(counts, ahead), stamps.beyond_us)
