"""What an earlier run learned about a pipeline, to warn before the start of what cannot be held.

The records of a pipeline that has run contain its costs. They show whether the target is below the
pipeline's floor, and whether the floors of its classes add up to more than all cores can carry. The
user is warned, but the start is not refused: functions and machines change, and a pipeline must be
able to restart in the very overload that it crashed in.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tidegate.control.record import Record
from tidegate.control.shedding.classes import Worth, refuse_below_floor, refuse_overpromised
from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import BatchCost

_LAST_TICKS = 600
"""How many of the newest records are used: older ones may come from another machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """The lowest costs in the records of a run: those of a warm JVM on an idle machine."""

    costs: Mapping[str, BatchCost]
    """Costs by segment; the segment that reads the sources comes first."""
    imbalance: float
    """Imbalance of the first segment."""
    rate_by_class: Mapping[str, float]
    """Rows per second offered; empty where classes were not counted."""

    def floor_s(self, trigger_s: float = 0.0) -> float:
        """The mean latency of empty batches, with one task each, through all segments."""
        return sum(cost.floor_s(1, trigger_s) for cost in self.costs.values())

    def capacity(self, cores: int, target_s: float, trigger_s: float = 0.0) -> float:
        """Rows per second on target with so many cores, if the first segment could use them all."""
        first = next(iter(self.costs.values()))
        return first.most_throughput(
            cores, target_s, imbalance=self.imbalance, interval_s=trigger_s
        )


def earlier(records: Sequence[Record]) -> Earlier | None:
    """What the records show; None if no model had been learned yet."""
    newest = list(records)[-_LAST_TICKS:]
    known: list[tuple[float, Record, dict[str, BatchCost]]] = []
    for record in newest:
        names = [segment.name for segment in record.measurement.segments]
        if names and all(f"{name}.w_s" in record.beliefs for name in names):
            costs = {name: _cost(record.beliefs, name) for name in names}
            known.append((sum(cost.floor_s(1) for cost in costs.values()), record, costs))
    if not known:
        return None
    _, record, costs = min(known, key=lambda entry: entry[0])
    imbalance = record.beliefs.get(f"{next(iter(costs))}.imbalance", 1.0)
    return Earlier(costs=costs, imbalance=max(imbalance, 1.0), rate_by_class=_rates(newest))


def _cost(beliefs: Mapping[str, float], name: str) -> BatchCost:
    return BatchCost(
        fixed_s=beliefs[f"{name}.a0_s"],
        per_task_s=beliefs[f"{name}.a1_s"],
        work_s=beliefs[f"{name}.w_s"],
        least_s=beliefs.get(f"{name}.least_s", 0.0),  # older records do not tell it
        rowless_s=beliefs.get(f"{name}.rowless_s", 0.0),
    )


def _rates(records: Sequence[Record]) -> dict[str, float]:
    """The arrival rate of each class: the median rate, divided by the rows counted per class."""
    offered: dict[str, float] = {}
    rates = []
    for record in records:
        counts = [part for source in record.measurement.sources for part in source.classes]
        if counts:
            rates.append(record.measurement.arrival_rate)
        for part in counts:
            offered[part.name] = offered.get(part.name, 0.0) + part.offered
    total = sum(offered.values())
    if total <= 0.0:
        return {}
    usual = statistics.median(rates)
    return {name: usual * rows / total for name, rows in offered.items()}


def objections(
    known: Earlier,
    *,
    target_s: float,
    over_mean: float,
    trigger_s: float,
    cores: int,
    classes: Mapping[str, Worth],
) -> list[str]:
    """One sentence for each promise that, by the earlier run, cannot be held.

    `over_mean` is the ratio of the targeted percentile to the mean latency; 1 for the mean itself.
    """
    rates = {name: rate for name, rate in known.rate_by_class.items() if name in classes}
    carried = known.capacity(cores, target_s / over_mean, trigger_s)
    checks: tuple[Callable[[], None], ...] = (
        lambda: refuse_below_floor(target_s, over_mean * known.floor_s(trigger_s)),
        lambda: refuse_overpromised(classes, rates, carried),
    )
    said = []
    for check in checks:
        try:
            check()
        except AskedWrongly as error:
            said.append(str(error))
    return said
