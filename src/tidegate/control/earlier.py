"""What an earlier run knew of a pipeline: enough to refuse, before the start, what cannot be held.

A pipeline that has run has its costs in its records. So a target below its floor, or floors of
classes that add up to more than all cores carry, need not be found out again by missing them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate.control.record import Record
from tidegate.control.shed_classes import Worth, refuse_below_floor, refuse_overpromised
from tidegate.models.microbatch import BatchCost

_LAST_TICKS = 120
"""The rates of classes are those of so many ticks with rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """Of the newest record that knew."""

    costs: Mapping[str, BatchCost]
    """By segment, the one that reads the sources first."""
    imbalance: float
    """Of that segment."""
    bias: float
    """Measured over modelled latency."""
    rate_by_class: Mapping[str, float]
    """Rows per second offered; empty where classes were not counted."""

    def floor_s(self, tasks: int) -> float:
        """The mean latency of batches with no rows in them, through all segments."""
        return self.bias * sum(1.5 * cost.overhead_s(tasks) for cost in self.costs.values())

    def capacity(self, cores: int, target_s: float) -> float:
        """Rows per second that so many cores carry on target, if the first segment had them all."""
        first = next(iter(self.costs.values()))
        return first.throughput(cores, target_s / self.bias, imbalance=self.imbalance)


def earlier(records: Sequence[Record]) -> Earlier | None:
    """What the records tell; None where no model had been learned."""
    for record in reversed(records):
        beliefs = record.beliefs
        names = [segment.name for segment in record.measurement.segments]
        if names and all(f"{name}.w_s" in beliefs for name in names):
            return Earlier(
                costs={
                    name: BatchCost(
                        fixed_s=beliefs[f"{name}.a0_s"],
                        per_task_s=beliefs[f"{name}.a1_s"],
                        work_s=beliefs[f"{name}.w_s"],
                    )
                    for name in names
                },
                imbalance=max(beliefs.get(f"{names[0]}.imbalance", 1.0), 1.0),
                bias=beliefs.get("bias", 1.0),
                rate_by_class=_rates(records),
            )
    return None


def _rates(records: Sequence[Record]) -> dict[str, float]:
    offered: dict[str, float] = {}
    spent_s, ticks = 0.0, 0
    for record in reversed(records):
        counts = [part for source in record.measurement.sources for part in source.classes]
        if ticks == _LAST_TICKS:
            break
        if counts:
            ticks += 1
        spent_s += record.measurement.interval_s if ticks else 0.0
        for part in counts:
            offered[part.name] = offered.get(part.name, 0.0) + part.offered
    return {name: rows / spent_s for name, rows in offered.items()} if spent_s > 0.0 else {}


def refuse_unshedable(
    known: Earlier, *, target_s: float, cores: int, least: int, classes: Mapping[str, Worth]
) -> None:
    """Refuse a target that shedding all rows would miss, and floors that nobody could keep."""
    refuse_below_floor(target_s, known.floor_s(least))
    rates = {name: rate for name, rate in known.rate_by_class.items() if name in classes}
    if rates:
        refuse_overpromised(classes, rates, known.capacity(cores, target_s))
