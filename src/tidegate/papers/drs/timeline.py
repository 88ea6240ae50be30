"""A run as DRS draws it: splits and sojourns by the minute, with a minute of a few seconds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tidegate.control.record import Record
from tidegate.papers.splits import shown

COST_OF_A_CHANGE = (
    "A change of the split takes effect with the next micro-batch and stops nothing. Its cost is"
    " told as in the paper: the mean sojourn of the minute from the change on, less that of the"
    " minute before. The load moves it too, so the usual difference of two minutes is beside it."
)
"""A note of the figures that have `Timeline.increases`."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The records of a run, with time in minutes of the paper since the first record."""

    records: Sequence[Record]
    operators: tuple[str, ...]
    """Those whose tasks make up a split, in the order in which it is written."""
    minute_s: float

    def minute(self, record: Record) -> float:
        """When a record was taken."""
        return (record.measurement.at_s - self.records[0].measurement.at_s) / self.minute_s

    @property
    def splits(self) -> list[tuple[float, tuple[int, ...]]]:
        """Minutes at which the split changed, and what to; first the one it began with."""
        found: list[tuple[float, tuple[int, ...]]] = []
        for record in self.records:
            tasks = {one.name: one.tasks for one in record.measurement.operators}
            split = tuple(tasks[name] for name in self.operators)
            if not found or found[-1][1] != split:
                found.append((self.minute(record), split))
        return found

    def cores_at(self, minute: float) -> int:
        """The cores of the split at a moment."""
        return sum([split for at, split in self.splits if at <= minute][-1])

    def latency_ms(self, from_minute: float, to_minute: float) -> float | None:
        """The mean sojourn between two minutes; None if nothing was completed."""
        within = [
            one.measurement.latency.mean_s
            for one in self.records
            if one.measurement.latency is not None and from_minute <= self.minute(one) < to_minute
        ]
        return round(1000 * sum(within) / len(within), 1) if within else None

    def by_minute(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Minutes, and the mean sojourn in each of them in seconds, as the paper draws it."""
        last = int(self.minute(self.records[-1]))
        found = [(float(at), self.latency_ms(at, at + 1)) for at in range(last + 1)]
        told = [(at, value / 1000.0) for at, value in found if value is not None]
        return tuple(at for at, _ in told), tuple(value for _, value in told)

    def shown(self) -> str:
        """The changes in one line."""
        return ", ".join(f"{at:.1f}: {shown(split)}" for at, split in self.splits)

    def increases(self) -> str:
        """What the mean sojourn rose by at each change, in the measure that the paper has.

        That is the minute from the change on, less the one before. The load changes sojourns too,
        so the usual difference of a minute from the one before it is told as well.
        """
        found = []
        for at, _ in self.splits[1:]:
            before, later = self.latency_ms(at - 1, at), self.latency_ms(at, at + 1)
            if before is not None and later is not None:
                found.append(f"{at:.1f}: {later - before:+.0f}")
        if not found:
            return "none"
        _, by_minute_s = self.by_minute()
        usual = [abs(later - before) for before, later in pairwise(by_minute_s)]
        beside = f" (usually {1000 * median(usual):.0f})" if usual else ""
        return ", ".join(found) + beside

    def back_within_s(self, from_s: float, to_s: float, target_s: float) -> float | None:
        """How long after a change of the load sojourns were at most the target again, and stayed.

        Judged by the ticks between two moments; None if they were not within the target at the end.
        """
        begun_s = self.records[0].measurement.at_s
        late_s = 0.0
        told = False
        for one in self.records:
            at_s = one.measurement.at_s - begun_s
            if from_s <= at_s < to_s and one.measurement.latency is not None:
                told = True
                if one.measurement.latency.mean_s > target_s:
                    late_s = at_s - from_s
        if not told or late_s >= to_s - from_s - 2.0:
            return None
        return late_s
