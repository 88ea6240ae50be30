"""Records of a pipeline whose batches cost exactly what is given, so that the answer is known."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.helpers.pipeline_worlds import measured
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.decision import Decision, hold
from tidegate.control.record import Record
from tidegate.control.target import Target

FIXED_S, WORK_S = 0.2, 1e-3
TARGET_S = 1.5


def enough_for(rate: float, target_s: float = TARGET_S) -> int:
    """k >= lambda w / (1 - 1.5 a / T), by hand."""
    return max(math.ceil(rate * WORK_S / (1.0 - 1.5 * FIXED_S / target_s) - 1e-9), 1)


def known_run(
    rates: Sequence[float],
    cores: Sequence[int],
    *,
    decided: Mapping[int, int] | None = None,
    target_s: float | None = TARGET_S,
    bounds: Bounds | None = None,
    slower: float = 1.0,
    slower_from: int = 1 << 30,
    first_tick: int = 1,
) -> list[Record]:
    """One batch a tick. From tick `slower_from` on, batches take `slower` times as long."""
    found = []
    for place, (rate, there) in enumerate(zip(rates, cores, strict=True)):
        factor = slower if place >= slower_from else 1.0
        room = 1.0 - rate * WORK_S * factor / there
        assert room > 0.0, f"{there} cores cannot keep up with {rate:g} rows/s"
        duration_s = factor * FIXED_S / room
        tick = measured(
            first_tick + place,
            rate=rate,
            cores=there,
            backlog=rate * duration_s,
            duration_s=duration_s,
            latency_s=1.5 * duration_s,
        )
        made = Assembly(target=Target(target_s or 1.0), bounds=bounds or Bounds(1, 32))
        change = (decided or {}).get(place)
        decision = hold("it is right") if change is None else Decision(reason="more", cores=change)
        found.append(
            Record(
                tick=1 + place,
                policy="latency",
                target_s=target_s,
                measurement=tick,
                decision=decision,
                acted=change is not None,
                assembly=made.document() if place == 0 and target_s is not None else None,
            )
        )
    return found


def later(records: Sequence[Record], seconds: float) -> list[Record]:
    """The same records, so many seconds later."""
    return [
        replace(one, measurement=replace(one.measurement, at_s=one.measurement.at_s + seconds))
        for one in records
    ]
