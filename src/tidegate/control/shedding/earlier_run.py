"""What an earlier run knew of a pipeline: enough to say, before the start, what cannot be held.

A pipeline that has run has its costs in its records. So a target below its floor, or floors of
classes that add up to more than all cores carry, need not be found out again by missing them. It is
said and not refused: functions and machines change, and a pipeline must be able to start again in
the very overload that it crashed in.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tidegate.control.record import Record
from tidegate.control.shedding.classes import Worth, refuse_below_floor, refuse_overpromised
from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import BatchCost

_LAST_TICKS = 600
"""Records that count: an hour ago it may have been another machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """What the records of a run knew at best: the lowest costs, as the JVM was warm and alone."""

    costs: Mapping[str, BatchCost]
    """By segment, the one that reads the sources first."""
    imbalance: float
    """Of that segment."""
    rate_by_class: Mapping[str, float]
    """Rows per second offered; empty where classes were not counted."""

    def floor_s(self, trigger_s: float = 0.0) -> float:
        """The mean latency of batches with no rows in them, one task each, through all segments."""
        return sum(cost.floor_s(1, trigger_s) for cost in self.costs.values())

    def capacity(self, cores: int, target_s: float, trigger_s: float = 0.0) -> float:
        """Rows per second that so many cores carry on target, if the first segment had them all."""
        first = next(iter(self.costs.values()))
        return first.most_throughput(
            cores, target_s, imbalance=self.imbalance, interval_s=trigger_s
        )


def earlier(records: Sequence[Record]) -> Earlier | None:
    """What the records tell; None where no model had been learned."""
    newest = list(records)[-_LAST_TICKS:]
    known: list[tuple[float, Record, dict[str, BatchCost]]] = []
    for record in newest:
        names = [segment.name for segment in record.measurement.segments]
        if names and all(f"{name}.w_s" in record.beliefs for name in names):
            costs = {name: _cost(record.beliefs, name) for name in names}
            known.append((sum(cost.overhead_s(1) for cost in costs.values()), record, costs))
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
    )


def _rates(records: Sequence[Record]) -> dict[str, float]:
    """The classes' shares of what was counted, of the usual rate of arrivals."""
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
    """A sentence for each thing that could not be held the last time.

    `over_mean` is what the target speaks of over the mean latency: 1, or a percentile's ratio.
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
