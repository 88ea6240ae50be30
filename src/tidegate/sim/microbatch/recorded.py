"""A simulated world made from the records of a real run: its load, its costs and its machine.

The load is the rows of each micro-batch, spread over the time in which they arrived: between the
starts of the batch before it and of itself. The costs are those that the model learns from the
records, whatever policy decided. A machine is not equally fast all the time (a JVM compiles, a
neighbour works), so the recorded durations over the modelled ones become the world's paces, and
what is left of them its noise.
"""

import dataclasses
import math
import statistics
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.control.bounds import Bounds
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import BatchMeasurement, OperatorMeasurement
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.sim.microbatch.oracle import Oracle, OracleSegment, oracle
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, Vector, World
from tidegate.workload.profile import Profile

_PACE_S = 5.0
"""A pace is the median over so many seconds to either side."""
_ERA_S = 10.0
"""Keys are counted over spans of this length: hot keys may change from one to the next."""
_FEWEST_BATCHES = 8
_FIRST_BATCHES = 4
_SHORTEST_MS = 50
"""The shortest part of a span that rows are divided over."""
_FIRST_STAGE = 0.7
"""The share of a batch's duration after which its arrivals are surely known."""
_LATENCY_WINDOW_S = 3.0
"""On Spark the latency of a tick is that of the batches that ended within so many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedWorld:
    """The world of a recorded run, and the oracle's view of it."""

    world: World
    segments: tuple[OracleSegment, ...]
    reach: float
    """Measured over modelled latency, as the run had learned it."""

    def changed(self, *, load: float = 1.0, seed: int | None = None) -> "RecordedWorld":
        """The same world with `load` times the rows, or with other noise."""
        profile = self.world.profile
        scaled = Profile(profile.starts_ms, profile.rates * load)
        world = dataclasses.replace(
            self.world, profile=scaled, seed=self.world.seed if seed is None else seed
        )
        return dataclasses.replace(self, world=world)

    def oracle(self, target: Target, bounds: Bounds, cores_per_executor: int = 1) -> Oracle:
        """The least core-seconds that hold the target in this world."""
        step = cores_per_executor
        least = -(-bounds.least // step) * step
        cores = range(least, max(bounds.most, least) + 1, step)
        world = self.world
        return oracle(world.profile, world.seconds, self.segments, target, cores, reach=self.reach)


def recorded_world(records: Sequence[Record]) -> RecordedWorld:
    """The world of one run, from its records in order."""
    costs = _learned(records)
    first = records[0].measurement
    starts_s = first.at_s - first.interval_s
    seconds = records[-1].measurement.at_s - starts_s
    batches = {name: _batches(records, name) for name in costs}
    main = next(iter(costs))
    if len(batches[main]) < _FEWEST_BATCHES:
        raise AskedWrongly(
            f"this run has {len(batches[main])} micro-batches on record, too few to simulate it;"
            f" at least {_FEWEST_BATCHES} are needed"
        )
    rows = {name: sum(batch.rows for batch in found) for name, found in batches.items()}
    visits = {name: rows[name] / max(rows[main], 1) for name in costs}
    ratios = _ratios(batches[main], costs[main], starts_s)
    paces = _paces(ratios)
    segments, feeding = [], None
    for name, cost in costs.items():
        segments.append(
            SimulatedSegment(
                name=name,
                fixed_s=cost.fixed_s,
                per_task_s=cost.per_task_s,
                stages=_stages(records, name, cost.work_s * visits[name], starts_s),
                trigger_s=_trigger_s(records[-1], name),
                after=feeding,
            )
        )
        feeding = name
    grants_s = [one for r in records if (one := r.measurement.grant_s) is not None]
    world = World(
        segments=tuple(segments),
        profile=_load(records, batches[main], starts_s),
        seconds=seconds,
        cores=first.cores_asked,
        tick_s=first.tick_s or statistics.median(r.measurement.interval_s for r in records),
        grant_s=statistics.median(grants_s) if grants_s else 0.0,
        residuals=_residuals(ratios, paces),
        prompt=False,
        paces=paces,
        latency_window_s=_LATENCY_WINDOW_S,
        by_chance=True,
        starts_s=starts_s,
    )
    usual = math.exp(statistics.mean(math.log(factor) for _, factor in paces))
    seen = tuple(
        OracleSegment(
            cost=_scaled(cost, usual),
            imbalances=_imbalances(batches[name]),
            visits=visits[name],
            interval_s=_trigger_s(records[-1], name),
        )
        for name, cost in costs.items()
    )
    # The batches' own latency shows no bias for one segment: it is the wait and the duration.
    reach = 1.0 if len(costs) == 1 else records[-1].beliefs.get("bias", 1.0)
    return RecordedWorld(world=world, segments=seen, reach=reach)


def _learned(records: Sequence[Record]) -> dict[str, BatchCost]:
    """The cost of every segment, as the model knows it at the end of the records."""
    model = PipelineModel()
    for record in records:
        if record.measurement.stale is None:
            model.learn(record.measurement)
    names = [segment.name for segment in records[-1].measurement.segments]
    found = {name: cost for name in names if (cost := model.segment(name).cost) is not None}
    if not names or len(found) < len(names):
        raise AskedWrongly(
            "the costs of this pipeline cannot be learned from its records: the run was too short"
        )
    return found


def _batches(records: Sequence[Record], segment: str) -> list[BatchMeasurement]:
    """The batches of a segment, in order."""
    found = [
        batch
        for record in records
        for one in record.measurement.segments
        if one.name == segment
        for batch in one.batches
    ]
    return sorted(found, key=lambda batch: batch.ended_s)


def _load(
    records: Sequence[Record], batches: Sequence[BatchMeasurement], starts_s: float
) -> Profile:
    """Each batch's rows, over the time between the start of the batch before it and its own.

    The rate that a tick told is that of the last second before the newest batch began. So the rows
    of a longer span are divided between that second and the time before it.
    """
    edges_ms, rates = [0], []
    for batch in batches:
        begun_ms = round((batch.ended_s - batch.duration_s - starts_s) * 1000.0)
        span_ms = begun_ms - edges_ms[-1]
        rows = batch.rows + batch.shed_rows
        if span_ms <= 0:  # a first batch, whose rows were there before
            begun_ms, span_ms = edges_ms[-1] + 1, 1
        newest = _newest_second(records, batch) if span_ms >= 1000 + _SHORTEST_MS else None
        if newest is None:
            rates.append(1000.0 * rows / span_ms)
        else:
            newest = min(newest, float(rows))
            rates += [1000.0 * (rows - newest) / (span_ms - 1000), newest]
            edges_ms.append(begun_ms - 1000)
        edges_ms.append(begun_ms)
    rates.append(rates[-1])
    return Profile(np.array(edges_ms, dtype=np.int64), np.array(rates))


def _newest_second(records: Sequence[Record], batch: BatchMeasurement) -> float | None:
    """Rows of the second before a batch began, by the rate that was told while it ran.

    Its arrivals are known once its first stage is over, and those of the next batch some time after
    its end. None without a tick in between.
    """
    place = bisect_right(records, batch.ended_s, key=lambda record: record.measurement.at_s) - 1
    tick = records[place].measurement
    known_s = batch.ended_s - (1.0 - _FIRST_STAGE) * batch.duration_s
    return tick.arrival_rate if place >= 0 and tick.at_s >= known_s else None


def _ratios(
    batches: Sequence[BatchMeasurement], cost: BatchCost, starts_s: float
) -> list[tuple[float, float]]:
    """When each batch began, and how long it took over what the cost says."""
    return [
        (
            batch.ended_s - batch.duration_s - starts_s,
            batch.duration_s
            / max(cost.duration_s(batch.rows, batch.tasks, max(batch.imbalance, 1.0)), 1e-6),
        )
        for batch in batches
        if batch.rows > 0
    ]


def _paces(ratios: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """From each batch on, the median ratio of the batches around it; of the first ones, their own.

    The first batches of a run are slow, each in another way, and what they make a policy do costs
    cores for a while.
    """
    at = np.array([at_s for at_s, _ in ratios])
    ratio = np.array([one for _, one in ratios])
    around = [float(np.median(ratio[np.abs(at - at_s) <= _PACE_S])) for at_s in at]
    own = ratio[:_FIRST_BATCHES].tolist()
    return tuple(zip(at.tolist(), own + around[len(own) :], strict=True))


def _residuals(
    ratios: Sequence[tuple[float, float]], paces: Sequence[tuple[float, float]]
) -> tuple[float, ...]:
    """What the paces leave of the ratios, in logarithms."""
    pairs = list(zip(ratios, paces, strict=True))[_FIRST_BATCHES:]
    return tuple(math.log(one / pace) for (_, one), (_, pace) in pairs)


def _imbalances(batches: Sequence[BatchMeasurement]) -> Vector:
    """delta on 1, 2, ... cores: as measured where there are batches, in between interpolated."""
    by_tasks: dict[int, list[float]] = {}
    for batch in batches:
        by_tasks.setdefault(batch.tasks, []).append(max(batch.imbalance, 1.0))
    known = sorted((tasks, statistics.median(found)) for tasks, found in by_tasks.items())
    most = max(256, known[-1][0])
    tasks, delta = [1, *(k for k, _ in known if k > 1)], [1.0, *(d for k, d in known if k > 1)]
    return np.interp(np.arange(1, most + 1), tasks, delta)


def _scaled(cost: BatchCost, factor: float) -> BatchCost:
    return BatchCost(
        fixed_s=cost.fixed_s * factor,
        per_task_s=cost.per_task_s * factor,
        work_s=cost.work_s * factor,
    )


def _trigger_s(record: Record, segment: str) -> float:
    return next(one.trigger_s for one in record.measurement.segments if one.name == segment)


def _stages(
    records: Sequence[Record], segment: str, work_s: float, starts_s: float
) -> tuple[Stage, ...]:
    """The operators of a segment; each has its share of the work by its time at work."""
    busy_s: dict[str, float] = {}
    newest: dict[str, OperatorMeasurement] = {}
    for record in records:
        for operator in record.measurement.operators:
            if operator.segment == segment:
                busy_s[operator.name] = busy_s.get(operator.name, 0.0) + operator.busy_s
                newest[operator.name] = operator
    total_s = sum(busy_s.values())
    if total_s <= 0.0:  # an attached query: nothing is known of what is inside it
        return (Stage(name=segment, work_s=work_s),)
    return tuple(
        Stage(
            name=name,
            work_s=max(work_s * busy_s[name] / total_s, 1e-9),
            shards=len(operator.route),
            weights=_weights(records, name, starts_s) if operator.route else None,
            most_tasks=operator.most_tasks,
        )
        for name, operator in newest.items()
    )


def _weights(records: Sequence[Record], operator: str, starts_s: float) -> "RecordedWeights":
    """The share of each shard in the rows, era by era."""
    eras: dict[int, Vector] = {}
    for record in records:
        for one in record.measurement.operators:
            if one.name == operator and sum(one.shard_rows) > 0:
                era = int((record.measurement.at_s - starts_s) // _ERA_S)
                counted = np.array(one.shard_rows, dtype=np.float64)
                eras[era] = eras[era] + counted if era in eras else counted
    return RecordedWeights({era: rows / rows.sum() for era, rows in eras.items()})


@dataclass(frozen=True, slots=True)
class RecordedWeights:
    """The shards' shares of the rows, as they were counted in each era of the run."""

    eras: Mapping[int, Vector]

    def __call__(self, at_s: float, /) -> Vector:
        """The shares in the era of this time, or in the nearest one that had rows."""
        era = int(at_s // _ERA_S)
        return self.eras[min(self.eras, key=lambda known: abs(known - era))]
