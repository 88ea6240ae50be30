"""A trial run of the controller before the pipeline starts.

The models are compiled on first use (numba), which takes seconds on a new machine. A controller
that compiles while rows arrive would miss measurements. So a second controller, which is thrown
away afterwards, first decides on made-up measurements.
"""

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.batch_parts import SLOWEST
from tidegate.control.measurement import (
    BatchMeasurement,
    Latency,
    Measurement,
    OperatorMeasurement,
    SegmentMeasurement,
)
from tidegate.models.microbatch.batch_cost import SOJOURN_BATCHES

_TICKS = 14
_SHARDS = 16


def rehearse(assembly: Assembly) -> None:
    """Let a new controller see a load that grows ten-fold and falls back."""
    thrown_away = new_controller(assembly)
    for number in range(_TICKS):
        thrown_away.tick(_made_up(number, assembly.tick_s))


def _made_up(number: int, tick_s: float) -> Measurement:
    rate = 1000.0 if number == _TICKS // 2 else 100.0 + number
    at_s = 1.0 + number * tick_s
    tasks = 2 + number % 2
    rows = int(rate * tick_s)
    duration_s = 0.3 + 0.01 * rows / tasks
    batch = BatchMeasurement(
        batch_id=number,
        rows=rows,
        tasks=tasks,
        imbalance=1.1,
        duration_s=duration_s,
        ended_s=at_s,
        parts_s={SLOWEST: 0.01 * rows / tasks} if number % 2 else {},  # two ways to fit a batch
    )
    keyed = OperatorMeasurement(
        name="rehearsal",
        arrival_rate=rate,
        service_rate=100.0,
        tasks=tasks,
        rows=rows,
        busy_s=0.01 * rows,
        imbalance=1.3,
        route=tuple(shard % tasks for shard in range(_SHARDS)),
        shard_rows=tuple(rows // (shard + 1) for shard in range(_SHARDS)),
    )
    return Measurement(
        at_s=at_s,
        interval_s=tick_s,
        arrival_rate=rate,
        processed_rate=rate,
        backlog_rows=rate,
        cores_asked=tasks,
        cores_granted=tasks,
        saturated=False,
        latency=Latency(
            mean_s=SOJOURN_BATCHES * duration_s,
            p50_s=SOJOURN_BATCHES * duration_s,
            p95_s=2.0 * duration_s,
            p99_s=2.0 * duration_s,
        ),
        operators=(keyed,),
        segments=(
            SegmentMeasurement(
                name="main", arrival_rate=rate, backlog_rows=rate, tasks=tasks, batches=(batch,)
            ),
        ),
    )
