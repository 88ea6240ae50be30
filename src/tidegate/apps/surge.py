"""The demo: the load rises fourfold, the hot keys change, and the load falls again.

The pipeline has a map that calls a slow service and a keyed count, which both cost waiting time
(see `waiting`), over skewed keys. It runs under any policy, so that policies can be compared.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from tidegate.apps.running import run_batches
from tidegate.apps.surge_source import Counts, OwnSource, TopicSource
from tidegate.apps.waiting import Waiting, waiting_map
from tidegate.control.control_failure import ControlFailure
from tidegate.control.record import Record
from tidegate.control.shards.balance import THETA
from tidegate.errors import TidegateError
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.pipelines.functions import count
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.kafka.topic_load import TopicLoad
from tidegate.spark.loop.loop import ControlLoop
from tidegate.spark.run import Run
from tidegate.spark.start import start
from tidegate.spark.state.read import read_state
from tidegate.workload.keys import Keys, parse_keys
from tidegate.workload.profile import Profile, steps

LOW, HIGH = 200.0, 800.0
"""Rows per second before and after the surge, and during it."""
MAP_WAIT_S, KEYED_WAIT_S = 0.003, 0.004
TARGET_S = 2.0
CORES = (2, 16)
KEYS = 2000
SHARDS = 128
SCALE_IN_AFTER = "5 seconds"
"""Half of the default: the demo is a day's load in ninety seconds."""
WARM_S = 20.0
"""Seconds at the start that are not judged, while the JVM compiles and the models learn."""
_RESERVE = 0.8
"""The share of the target that a static allocation is planned for."""
_PATIENCE_S = 60.0
_WARM_BATCHES = 20


@dataclass(frozen=True, slots=True)
class Surge:
    """What happened in one run."""

    policy: str
    seconds: float
    """How long rows arrived."""
    records: list[Record]
    arrived: int
    counted: int
    verified: bool
    """Whether the state equals a batch recomputation over the rows that arrived, or what was
    produced to Kafka."""
    peak_cores: int
    """The cores of a static allocation for the peak load."""
    interrupted: bool = False
    """Whether Ctrl-C ended it; then `arrived` are the rows that were processed before."""


def surge_profile(seconds: float) -> Profile:
    """Low for a third of the time, a ramp of a fifteenth, high for a fifth, a ramp down, low."""
    ramp = seconds / 15
    up = seconds / 3
    down = up + ramp + seconds / 5
    changes = [(0.0, LOW)]
    for begin, first, last in ((up, LOW, HIGH), (down, HIGH, LOW)):
        stairs = max(round(ramp), 1)
        for stair in range(1, stairs + 1):
            rate = first + (last - first) * stair / stairs
            changes.append((begin + ramp * (stair - 1) / stairs, rate))
    return steps(changes)


def surge_keys(seconds: float) -> Keys:
    """Skewed keys; the hot ones change in the middle of the high load."""
    return parse_keys(f"zipf:{KEYS},0.8@{0.5 * seconds:g}")


def peak_cores(rate: float = HIGH, target_s: float = TARGET_S, fixed_s: float = 0.4) -> int:
    """The fewest cores that hold the target at this load, by the micro-batch formula.

    `fixed_s` is a batch's fixed cost on this machine; the keyed half of the work has the imbalance
    that the balancer allows. A fifth of the target is kept in reserve: a static allocation without
    one would miss the target half the time.
    """
    cost = BatchCost(fixed_s=fixed_s, work_s=MAP_WAIT_S + THETA * KEYED_WAIT_S)
    return max(CORES[0], min(CORES[1], cost.cores_for(rate, _RESERVE * target_s)))


def run_surge(
    spark: SparkSession,
    seconds: float,
    *,
    profile: Profile | None = None,
    policy: str = "latency",
    cores: int | tuple[int, int] = CORES,
    target_s: float = TARGET_S,
    seed: int = 1,
    kafka: bool = False,
    place: str | None = None,
    shared: bool = False,
    on_record: Callable[[Record], None] | None = None,
    on_failure: Callable[[ControlFailure], None] | None = None,
    notify: Sequence[str] = (),
) -> Surge:
    """Run under a policy until every row that arrived is counted, and verify the counts.

    Ctrl-C ends it at a batch boundary. What was counted until then is verified as well. With
    `kafka`, the rows go through a broker, and the session must have the connector. The checkpoint
    is below `place`, by default in a temporary directory; `shared` says that all hosts have it.
    """
    load = TopicLoad(profile or surge_profile(seconds), surge_keys(seconds), seconds, seed)
    arrived = load.count
    with (
        tempfile.TemporaryDirectory(prefix="tidegate-surge-") as directory,
        closing(TopicSource(load) if kafka else OwnSource(load)) as source,
    ):
        most = cores if isinstance(cores, int) else cores[1]
        root = place or directory
        warm_up(source.warm(spark), f"{root}/warm-up", most, shared=shared)
        checkpoint = f"{root}/surge"
        flow = surge_flow(source.stream(spark))
        least = cores if isinstance(cores, int) else cores[0]
        run = start(
            flow.graph,
            checkpoint=checkpoint,
            tasks=least,
            target=f"{target_s * 1000:.0f} ms",
            cores=cores,
            policy=policy,
            scale_in_after=SCALE_IN_AFTER,
            shared_checkpoint=shared,
            notify=notify,
        )
        loop = run.loop
        assert isinstance(loop, ControlLoop)
        if on_record is not None:
            loop.watchers.append(on_record)
        interrupted = False
        if on_failure is not None:
            loop.failure_watchers.append(on_failure)
        try:
            source.begin()
            counted = _await_rows(run, arrived, seconds + _PATIENCE_S)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            run.stop()
        if loop.failure is not None:
            raise TidegateError(f"the control loop failed: {loop.failure}") from loop.failure
        if interrupted:
            if not loop.records or not run.results():
                raise KeyboardInterrupt  # there is nothing to show yet
            arrived = counted = int(_state(checkpoint).sum())
            last = run.results()[-1].plan.batch_id
            expected = source.processed(spark, checkpoint, last, counted)
        else:
            expected = source.produced()
        verified = bool(np.array_equal(_state(checkpoint), expected))
    peak = peak_cores(float(load.profile.rates.max()), target_s)
    records = list(loop.records)
    return Surge(policy, seconds, records, arrived, counted, verified, peak, interrupted)


def surge_flow(stream: DataFrame) -> Stream:
    """The pipeline: a map and a keyed count, which both sleep for every row."""
    return (
        pipeline("surge", stream, arrival="timestamp")
        .map(waiting_map(MAP_WAIT_S), name="enrich", tasks=(1, CORES[1]))
        .keyed("count", Waiting(count(), KEYED_WAIT_S), key="key", shards=SHARDS)
    )


def warm_up(stream: DataFrame, place: str, tasks: int, *, shared: bool = False) -> None:
    """Run some batches with all tasks, to start the Python workers and let the JVM compile."""
    flow = (
        pipeline("warm", stream, arrival="timestamp")
        .map(waiting_map(0.0), name="enrich", tasks=(1, CORES[1]))
        .keyed("count", count(), key="key", shards=SHARDS)
    )
    run = start(flow.graph, checkpoint=place, tasks=tasks, shared_checkpoint=shared)
    run_batches(run, _WARM_BATCHES, _PATIENCE_S * 4)


def _await_rows(run: Run, wanted: int, patience_s: float) -> int:
    """Wait until the keyed operator has processed `wanted` rows; return how many it had."""
    until = time.monotonic() + patience_s
    seen: dict[int, int] = {}
    while sum(seen.values()) < wanted and time.monotonic() < until:
        if run.awaitTermination(0.2):
            break
        for result in run.results():
            seen[result.plan.batch_id] = sum(report.rows_in for report in result.of("count"))
    return sum(seen.values())


def _state(checkpoint: str) -> Counts:
    """The count of every key in the state."""
    state = read_state(checkpoint, "count")
    found = np.zeros(KEYS, dtype=np.int64)
    found[state["key"].to_numpy()] = state["count"].to_numpy()
    return found
