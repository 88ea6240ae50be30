"""Made-up runs of the queries."""

import numpy as np

from tidegate.apps.application import Verdict
from tidegate.apps.planetlab.ages import ResultAges
from tidegate.apps.planetlab.outcome import Planetlab
from tidegate.control.decision import hold
from tidegate.control.learning.sojourn import BatchStamps, Stamps
from tidegate.control.measurement import Latency, Measurement
from tidegate.control.record import Record
from tidegate.control.row_counts import SourceCount

TICKS = 30
OFFERED, KEPT = 1000, 400
"""Of each tick."""


def record(tick: int, latency_s: float) -> Record:
    measurement = Measurement(
        at_s=1000.0 + tick,
        interval_s=1.0,
        arrival_rate=float(OFFERED),
        processed_rate=float(KEPT),
        backlog_rows=0.0,
        cores_asked=2,
        cores_granted=2,
        saturated=True,
        cores_busy=1.5,
        latency=Latency(mean_s=latency_s, p50_s=latency_s, p95_s=latency_s, p99_s=latency_s),
        sources=(SourceCount(name="source", offered=OFFERED, kept=KEPT),),
    )
    return Record(
        tick=tick,
        policy="static",
        target_s=1.0,
        measurement=measurement,
        decision=hold(""),
        acted=False,
    )


def outcome(
    queries: int = 200,
    mean_s: float = 1.0,
    *,
    grows: float = 0.0,
    correct: bool = True,
    lost_by_one: int = 0,
    cpu_percent: float | None = 120.0,
) -> Planetlab:
    """A run whose rows were all this old, and whose latency grew by so much every second."""
    ages = ResultAges()
    for second in range(TICKS):
        end_us = round((1000.0 + second + mean_s) * 1e6)
        arrivals = np.full(KEPT, (1000 + second) * 1_000_000 + 500)
        ages.add(BatchStamps(Stamps.of(arrivals), end_us))
    kept = [TICKS * KEPT] * queries
    kept[-1] -= lost_by_one
    return Planetlab(
        queries=queries,
        records=[record(tick, mean_s + grows * tick) for tick in range(TICKS)],
        judged_from_s=1010.0,
        counts=SourceCount(name="source", offered=TICKS * OFFERED, kept=TICKS * KEPT),
        kept_per_query=tuple(kept),
        ages=ages,
        cpu_percent=cpu_percent,
        verdict=Verdict(
            correct=correct,
            said="all averages are right" if correct else "3 of 40 averages differ",
            figures={"mean_error_points": 0.5, "within_stated_error": 0.95},
        ),
    )
