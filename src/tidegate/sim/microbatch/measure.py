"""The simulated meter: what Spark's meter would measure of the same batches."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tidegate.columns import IntColumn
from tidegate.control.batch_parts import SLOWEST, STAGES, STARTING
from tidegate.control.lag import Lag, PartitionLag
from tidegate.control.measurement import (
    BatchMeasurement,
    ExecutorMeasurement,
    Latency,
    OperatorMeasurement,
    SegmentMeasurement,
)
from tidegate.control.row_counts import ClassCount, SourceCount
from tidegate.models.flow.deal import SLOTS, slot_route
from tidegate.sim.microbatch.batch import RunningSegment, SimulatedBatch, task_times
from tidegate.sim.microbatch.cluster import ClusterWorld
from tidegate.sim.microbatch.done_rows import DoneRows
from tidegate.sim.microbatch.world import Stage

Ended = Sequence[tuple[int, SimulatedBatch]]
"""Batches that ended during a tick, with their numbers."""


def source_name(one: RunningSegment) -> str:
    """The name of the source that a segment reads."""
    return f"source of {one.segment.name}"


def source_count(one: RunningSegment, ended: Ended) -> SourceCount:
    """Rows offered to, and kept by, the batches of a segment that reads the source."""
    offered = sum(batch.offered for _, batch in ended)
    rows = sum(batch.rows for _, batch in ended)
    names = dict.fromkeys(name for _, batch in ended for name in batch.by_class)
    classes = tuple(
        ClassCount(
            name=name,
            offered=round(sum(batch.by_class[name][0] for _, batch in ended)),
            kept=round(sum(batch.by_class[name][1] for _, batch in ended)),
        )
        for name in names
    )
    return SourceCount(
        name=source_name(one),
        offered=round(offered),
        kept=round(rows),
        classes=classes,
    )


def segment_measurement(
    one: RunningSegment,
    ended: Ended,
    rate: float,
    waiting: float,
    starts_s: float,
    followers: Sequence[str] = (),
) -> SegmentMeasurement:
    """One segment during the tick; `followers` are the segments that get its rows."""
    rows = sum(round(batch.rows) for _, batch in ended)
    return SegmentMeasurement(
        name=one.segment.name,
        arrival_rate=rate,
        backlog_rows=waiting,
        tasks=max(one.tasks.values()),
        trigger_s=one.segment.trigger_s,
        apart=one.segment.profile is not None,
        handed=dict.fromkeys(followers, rows) if rows else {},
        batches=tuple(
            BatchMeasurement(
                batch_id=number,
                rows=round(batch.rows),
                tasks=batch.tasks,
                imbalance=batch.imbalance,
                duration_s=batch.ended_s - batch.started_s,
                ended_s=starts_s + batch.ended_s,
                shed_rows=round(batch.offered - batch.rows),
                outlier=batch.cold,
                parts_s={
                    SLOWEST: batch.slowest_s,
                    STARTING: batch.starting_s,
                    STAGES: batch.ended_s - batch.started_s - batch.slowest_s - batch.starting_s,
                },
            )
            for number, batch in ended
        ),
        lag=lag_of(one, ended, rate),
        idle=one.batch is None and waiting <= 0.0,
        latency=latency_of(
            [DoneRows(batch.since_s, batch.counts, batch.ended_s) for _, batch in ended]
        ),
    )


def as_foreign(segment: SegmentMeasurement, ended: Ended, cores: int) -> SegmentMeasurement:
    """What a meter knows of a segment that is a query of others (`AttachedMeter`)."""
    batches = tuple(
        replace(batch, imbalance=1.0, parts_s={}, busy_s=sum(simulated.busy_s.values()))
        for batch, (_, simulated) in zip(segment.batches, ended, strict=True)
    )
    return replace(segment, tasks=cores, batches=batches, apart=True, latency=None)


def lag_of(one: RunningSegment, ended: Ended, rate: float) -> Lag | None:
    """How far a segment with partitions or a read limit is behind its source; None for others."""
    segment = one.segment
    if segment.limit_rows is None and segment.partitions is None:
        return None
    count = segment.partitions or 1
    taken = sum(batch.offered for _, batch in ended)
    parts = tuple(
        PartitionLag(
            topic=source_name(one),
            partition=partition,
            behind_rows=round(one.behind_rows / count),
            taken_rows=round(taken / count),
        )
        for partition in range(count)
    )
    seconds = one.behind_rows / rate if rate > 0.0 else None
    return Lag(partitions=parts, seconds=seconds, limit_rows=segment.limit_rows)


def operator_measurements(
    one: RunningSegment, ended: Ended, rate: float, feeder: str, nodes: tuple[str, ...] = ()
) -> list[OperatorMeasurement]:
    """The operators of one segment during the tick, of which the first reads the `feeder`.

    `nodes` has the node of each core of a simulated cluster.
    """
    found = []
    stages, reads = one.segment.stages, one.segment.partitions is not None
    feeders = (feeder, *(stage.name for stage in stages))
    for stage, before in zip(stages, feeders, strict=False):
        name = stage.name
        counts: Sequence[int] = ()
        if stage.shards and ended:
            per_shard = [batch.shard_rows[name] for _, batch in ended if name in batch.shard_rows]
            if per_shard:
                counts = IntColumn(np.rint(np.sum(per_shard, axis=0)))
        tasks, shares = one.tasks[name], one.deals.get(name, ())
        spent = float(task_times(stage, tasks, shares).sum()) if stage.speeds else 1.0
        # As on Spark, speeds are no part of an imbalance that is counted in rows.
        known = ended and (shares or not stage.speeds)
        rows = sum(batch.rows for _, batch in ended)
        busy_s = sum(batch.busy_s[name] for _, batch in ended)
        service_rate = 1.0 / (stage.row_s(tasks) * spent)
        if busy_s > 0.0 and ended[-1][1].on_nodes:
            service_rate = rows / busy_s
        last = ended[-1][1] if ended else None
        rates = () if last is None else last.rates_of.get(name, ())
        executors = () if last is None else last.executors_of.get(name, ())
        found.append(
            OperatorMeasurement(
                name=name,
                arrival_rate=rate,
                service_rate=service_rate,
                tasks=tasks,
                imbalance=ended[-1][1].imbalances[name] if known else 1.0,
                segment=one.segment.name,
                rows=round(rows),
                busy_s=busy_s,
                most_tasks=stage.most_tasks or stage.shards or None,
                route=slot_route(shares, SLOTS * tasks) if shares else one.routes.get(name, ()),
                shard_rows=counts,
                inputs=(before,),
                inside=before if reads and stage is stages[0] else None,
                task_rates=rates if len(rates) == tasks else _task_rates(stage, tasks),
                executors=executors if len(executors) == tasks else (),
                dealt=bool(shares),
                parts=one.parts.get(name, 1),
                rows_out=round(rows),
                nodes=nodes[:tasks] if stage.shards else (),
            )
        )
    return found


def executor_measurements(
    batches: Sequence[SimulatedBatch], world: ClusterWorld
) -> tuple[ExecutorMeasurement, ...]:
    """The nodes of a simulated cluster with their largest memory in these batches."""
    if world.memory_bytes is None:
        return ()
    most: dict[str, tuple[float, int]] = {}
    for batch in batches:
        for name, needed in batch.memory_of.items():
            most[name] = max((needed, batch.parts), most.get(name, (0.0, 1)))
    base = world.base_bytes * world.cores_each
    return tuple(
        ExecutorMeasurement(
            name=name,
            memory_bytes=base + round(needed),
            base_bytes=base,
            limit_bytes=world.memory_bytes,
            parts=parts,
        )
        for name, (needed, parts) in most.items()
    )


def _task_rates(stage: Stage, tasks: int) -> tuple[float, ...]:
    """The speed of each task in rows per second, where tasks differ."""
    if not stage.speeds or tasks < 2:
        return ()
    speeds = 1.0 / (tasks * task_times(stage, tasks, ()))
    return tuple((speeds / stage.work_s).tolist())


def latency_of(batches: Sequence[DoneRows]) -> Latency | None:
    """Mean and percentiles of the sojourn over rows that are done."""
    rows = sum(batch.rows for batch in batches)
    if rows <= 0.0:
        return None
    waits = np.concatenate([batch.ended_s - batch.arrived_s for batch in batches])
    counts = np.concatenate([batch.counts for batch in batches])
    order = np.argsort(waits)
    reached = np.cumsum(counts[order])
    p50_s, p95_s, p99_s = (
        float(waits[order][min(np.searchsorted(reached, share * reached[-1]), len(order) - 1)])
        for share in (0.50, 0.95, 0.99)
    )
    mean_s = float(waits @ counts / counts.sum())
    return Latency(mean_s=mean_s, p50_s=p50_s, p95_s=p95_s, p99_s=p99_s)
