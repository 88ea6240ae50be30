"""Hand-made ticks of a run in hindsight, where the cores that were enough are given."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidegate.control.bounds import Bounds
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import (
    BatchMeasurement,
    Latency,
    Measurement,
    SegmentMeasurement,
)
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.view.hindsight.core_change import ChangedCores, changes_of_cores
from tidegate.view.hindsight.missed import missed_causes
from tidegate.view.hindsight.needs import Need
from tidegate.view.hindsight.past_tick import PastTick
from tidegate.view.hindsight.settings import InForce

START_S = 1_700_000_000.0
TARGET = Target(2.0)
ROWS_A_CORE = 500.0
"""One core is enough for so many rows per second, in these runs."""


def past(
    enough: Sequence[int | None],
    granted: Sequence[int],
    *,
    asked: Sequence[int] | None = None,
    missed: Sequence[int] = (),
    decided: Mapping[int, int] | None = None,
    held: Mapping[int, tuple[int, str]] | None = None,
    beliefs: Mapping[str, float] | None = None,
    beliefs_at: Mapping[int, Mapping[str, float]] | None = None,
    believed: Sequence[int] | None = None,
    planned: Sequence[int] | None = None,
    rates: Sequence[float] | None = None,
    outliers: Mapping[int, str] | None = None,
    reason: str = "so many cores",
    policy: str = "latency",
    settings: InForce | None = None,
    wanted: Sequence[int] | None = None,
    share: int | None = None,
    grant_s: float | None = None,
    backlog: float = 0.0,
) -> list[PastTick]:
    """One tick a second: what was enough, what was there, and what was decided.

    `decided` has the cores of decisions that were acted on, `held` those that were held back, each
    by the number of its tick.
    """
    ticks = []
    for place, (need, there) in enumerate(zip(enough, granted, strict=True)):
        rate = rates[place] if rates else ROWS_A_CORE * (need or 1)
        late = place in missed
        decision, acted, why = hold("it is right"), False, None
        if place in (decided or {}):
            decision, acted = Decision(reason=reason, cores=(decided or {})[place]), True
        elif place in (held or {}):
            cores, why = (held or {})[place]
            decision = Decision(reason=reason, cores=cores)
        mean_s = 3.0 if late else 1.0
        measurement = Measurement(
            at_s=START_S + place + 1,
            interval_s=1.0,
            arrival_rate=rate,
            processed_rate=rate,
            backlog_rows=backlog,
            cores_asked=asked[place] if asked else there,
            cores_granted=there,
            saturated=False,
            latency=Latency(mean_s=mean_s, p50_s=mean_s, p95_s=mean_s, p99_s=mean_s),
            segments=(_segment(place, rate, there, (outliers or {}).get(place)),),
            grant_s=grant_s,
        )
        known: dict[str, Any] = {**(beliefs or {}), **(beliefs_at or {}).get(place, {})}
        record = Record(
            tick=place + 1,
            policy=policy,
            target_s=TARGET.latency_s,
            measurement=measurement,
            decision=decision,
            acted=acted,
            held_back=why,
            beliefs=known,
            share=share,
        )
        found = None
        if need is not None:
            found = Need(
                rate=rate,
                enough=need,
                wanted=wanted[place] if wanted else need,
                reachable=True,
                believed=believed[place] if believed else need,
                planned=planned[place] if planned else need,
            )
        in_force = settings or InForce(TARGET, Bounds(1, 64))
        ticks.append(PastTick(record, in_force, found, not late))
    return ticks


def _segment(place: int, rate: float, cores: int, outlier: str | None) -> SegmentMeasurement:
    batch = BatchMeasurement(
        batch_id=place,
        rows=round(rate),
        tasks=cores,
        imbalance=1.0,
        duration_s=0.7,
        ended_s=START_S + place + 1,
        outlier=outlier,
    )
    return SegmentMeasurement(
        name="main", arrival_rate=rate, backlog_rows=0.0, tasks=cores, batches=(batch,)
    )


def changes(ticks: Sequence[PastTick]) -> list[ChangedCores]:
    return changes_of_cores(ticks, START_S)


def causes(ticks: Sequence[PastTick]) -> dict[int, str]:
    return {place: one for place, one in enumerate(missed_causes(ticks)) if one is not None}


def with_reachable(ticks: Sequence[PastTick], *, reachable: bool) -> list[PastTick]:
    """The same, with a target that can be held or not."""
    return [
        replace(tick, need=None if tick.need is None else replace(tick.need, reachable=reachable))
        for tick in ticks
    ]
