"""A simulated world made from the records of a real run: its load, its costs and its machine.

The load is the rows of each micro-batch, spread over the time in which they arrived
(`recorded_load`). The costs are those that the model learns from the records, whatever policy
decided. A machine is not equally fast all the time (a JVM compiles, a neighbour works), so the
recorded durations over the modelled ones become the world's paces, and what is left of them its
noise.

Records do not say which segment feeds which. A segment follows the one before it, unless it is
`apart`: then it has a load of its own. Loops are not simulated.
"""

import dataclasses
import math
import statistics
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
from tidegate.sim.microbatch.recorded_load import batches_of, recorded_load
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, Vector, World
from tidegate.workload.profile import Profile

_PACE_S = 5.0
"""A pace is the median over so many seconds to either side."""
_ERA_S = 10.0
"""Keys are counted over spans of this length: hot keys may change from one to the next."""
_FEWEST_BATCHES = 8
_FIRST_BATCHES = 4
_LATENCY_WINDOW_S = 3.0
"""On Spark the latency of a tick is that of the batches that ended within so many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedWorld:
    """The world of a recorded run, and the oracle's view of it."""

    world: World
    segments: tuple[OracleSegment, ...]
    reach: float
    """Measured over modelled latency, as the run had learned it."""

    def changed(
        self, *, load: float = 1.0, seed: int | None = None, cores: int | None = None
    ) -> "RecordedWorld":
        """The same world with `load` times the rows, other noise, or other cores at the start."""
        world = self.world
        changed = dataclasses.replace(
            world,
            profile=_times(world.profile, load),
            backlog_rows=world.backlog_rows * load,
            segments=tuple(
                dataclasses.replace(
                    one,
                    profile=None if one.profile is None else _times(one.profile, load),
                    backlog_rows=one.backlog_rows * load,
                )
                for one in world.segments
            ),
            seed=world.seed if seed is None else seed,
            cores=world.cores if cores is None else cores,
        )
        return dataclasses.replace(self, world=changed)

    def oracle(self, target: Target, bounds: Bounds, cores_per_executor: int = 1) -> Oracle:
        """The least core-seconds that hold the target in this world."""
        step = cores_per_executor
        least = -(-bounds.least // step) * step
        cores = range(least, max(bounds.most, least) + 1, step)
        world = self.world
        return oracle(
            world.profile,
            world.seconds,
            [
                dataclasses.replace(seen, load=one.profile, backlog_rows=one.backlog_rows)
                for seen, one in zip(self.segments, world.segments, strict=True)
            ],
            target,
            cores,
            reach=self.reach,
            backlog_rows=world.backlog_rows,
        )


def _times(profile: Profile, factor: float) -> Profile:
    return Profile(profile.starts_ms, profile.rates * factor)


def recorded_world(records: Sequence[Record]) -> RecordedWorld:
    """The world of one run, from its records in order."""
    _refuse_loops(records)
    costs = _learned(records)
    first = records[0].measurement
    starts_s = first.at_s - first.interval_s
    seconds = records[-1].measurement.at_s - starts_s
    batches = {name: batches_of(records, name) for name in costs}
    main = next(iter(costs))
    if len(batches[main]) < _FEWEST_BATCHES:
        raise AskedWrongly(
            f"this run has {len(batches[main])} micro-batches on record, too few to simulate it;"
            f" at least {_FEWEST_BATCHES} are needed"
        )
    rows = {name: sum(batch.rows for batch in found) for name, found in batches.items()}
    ratios = _ratios(batches[main], costs[main], starts_s)
    paces = _paces(ratios)
    usual = math.exp(statistics.mean(math.log(factor) for _, factor in paces))
    ways = _ways(records[-1])
    roots = set(ways.values())
    loads = {root: recorded_load(records, root, starts_s, alone=len(roots) == 1) for root in roots}
    segments, seen, feeding = list[SimulatedSegment](), list[OracleSegment](), ""
    for name, cost in costs.items():
        root = ways[name]
        visits = rows[name] / max(rows[root], 1)
        own = loads[root] if name == root != main else None
        trigger_s = _trigger_s(records[-1], name)
        segments.append(
            SimulatedSegment(
                name=name,
                fixed_s=cost.fixed_s,
                per_task_s=cost.per_task_s,
                least_s=cost.least_s,
                stages=_stages(records, name, cost.work_s * visits, starts_s),
                trigger_s=trigger_s,
                after=None if name == root else feeding,
                profile=None if own is None else own.profile,
                backlog_rows=0.0 if own is None else own.backlog_rows,
            )
        )
        seen.append(
            OracleSegment(
                cost=_scaled(cost, usual),
                imbalances=_imbalances(batches[name]),
                visits=visits,
                interval_s=trigger_s,
            )
        )
        feeding = name
    grants_s = [one for r in records if (one := r.measurement.grant_s) is not None]
    world = World(
        segments=tuple(segments),
        profile=loads[main].profile,
        backlog_rows=loads[main].backlog_rows,
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
    # The batches' own latency shows no bias for one segment: it is the wait and the duration.
    reach = 1.0 if len(costs) == 1 else records[-1].beliefs.get("bias", 1.0)
    return RecordedWorld(world=world, segments=tuple(seen), reach=reach)


def _refuse_loops(records: Sequence[Record]) -> None:
    """Rows that come back are neither load from outside nor done, and records do not count them."""
    looped = [one.name for one in records[-1].measurement.segments if one.loops]
    if looped:
        raise AskedWrongly(
            f"rows of segment '{looped[0]}' can come back to it through a loop, and a recorded run"
            " with a loop cannot be simulated; ask about a pipeline without one"
        )


def _ways(record: Record) -> dict[str, str]:
    """For each segment, the one that read its rows from outside: the last such one before it."""
    found: dict[str, str] = {}
    root = ""
    for number, one in enumerate(record.measurement.segments):
        root = one.name if number == 0 or one.apart else root
        found[one.name] = root
    return found


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
        least_s=cost.least_s * factor,
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
            shards=len(_shards(operator)),
            weights=_weights(records, name, starts_s) if _shards(operator) else None,
            most_tasks=operator.most_tasks,
        )
        for name, operator in newest.items()
    )


def _shards(operator: OperatorMeasurement) -> Sequence[int]:
    """The route of its shards; a map that is dealt rows by speed has slots, and no shards."""
    return () if operator.dealt else operator.route


def _weights(records: Sequence[Record], operator: str, starts_s: float) -> "RecordedWeights | None":
    """The share of each shard in the rows, era by era; None for an operator that never got one."""
    eras: dict[int, Vector] = {}
    for record in records:
        for one in record.measurement.operators:
            if one.name == operator and sum(one.shard_rows) > 0:
                era = int((record.measurement.at_s - starts_s) // _ERA_S)
                counted = np.array(one.shard_rows, dtype=np.float64)
                eras[era] = eras[era] + counted if era in eras else counted
    return RecordedWeights({era: rows / rows.sum() for era, rows in eras.items()}) if eras else None


@dataclass(frozen=True, slots=True)
class RecordedWeights:
    """The shards' shares of the rows, as they were counted in each era of the run."""

    eras: Mapping[int, Vector]

    def __call__(self, at_s: float, /) -> Vector:
        """The shares in the era of this time, or in the nearest one that had rows."""
        era = int(at_s // _ERA_S)
        return self.eras[min(self.eras, key=lambda known: abs(known - era))]
