"""The simulated world of a contested query: its stages, its hot keys, and what they cost.

Keys are those of the real events, so hot ones come and go as they do on Spark: the weights of the
shards at a moment are those of the events of the second and a half before.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from statistics import fmean

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from benchmarks.autoscalers_bodies.contest import CORES, HOT_EVERY, QUERIES, TARGET_S, Contested

from tidegate.apps.nexmark.events import NexmarkEvents, is_kind
from tidegate.apps.nexmark.query import SHARDS
from tidegate.control.shards.balance import imbalance
from tidegate.control.shards.route import even_route
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.sim.microbatch.oracle import OracleSegment
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, Vector, World
from tidegate.workload.profile import Profile, constant

FIXED_S = 0.45
PER_TASK_S = 0.012
"""Of a batch; chosen, because no run on Spark has told it yet."""
NOISE, ODD_BATCHES = 0.08, 0.005
_ERA_S, _SPAN_S = 0.5, 1.5
_MOMENTS = 40
"""Of the load, at which the imbalance is looked at."""
_STEADY_S = 20.0
"""Seconds of the highest load that tell how uneven it is."""
_RESERVE = 0.8
"""The share of the target that a static allocation is planned for, as in the demo."""
_KEYS = {"q3": ("seller", "id"), "q5": ("auction",), "q11": ("bidder",)}
"""The column of the key in each input of a query, in any order."""
_HASH = np.uint64(0x9E3779B97F4A7C15)


@dataclass(slots=True)
class HotShards:
    """The weights of the shards by the time since the start, worked out when asked for."""

    contested: Contested
    events: NexmarkEvents
    _eras: dict[int, Vector] = field(default_factory=dict)

    def __call__(self, at_s: float, /) -> Vector:
        """Those of the events just before."""
        era = max(int(at_s / _ERA_S), 1)
        if era not in self._eras:
            end_ms = round(era * _ERA_S * 1000.0)
            begin_ms = max(end_ms - round(_SPAN_S * 1000.0), 0)
            self._eras[era] = self._weights(begin_ms, end_ms)
        return self._eras[era]

    def _weights(self, begin_ms: int, end_ms: int) -> Vector:
        profile = self.events.profile
        numbers = np.arange(profile.count(begin_ms), profile.count(end_ms), dtype=np.int64)
        counts = np.zeros(SHARDS)
        for pick in self.contested.query.picks:
            its = numbers[is_kind(pick.kind, numbers)]
            rows = pick.rows(self.events.of(pick.kind, its)).rows
            shards = (_key(self.contested, rows).astype(np.uint64) * _HASH) >> np.uint64(40)
            counts += np.bincount((shards % np.uint64(SHARDS)).astype(np.int64), minlength=SHARDS)
        total = float(counts.sum())
        return counts / total if total > 0.0 else np.full(SHARDS, 1.0 / SHARDS)


def _key(contested: Contested, rows: pa.Table) -> npt.NDArray[np.int64]:
    """The key of each picked row."""
    names = _KEYS[contested.query.name]
    name = next(name for name in names if name in rows.schema.names)
    keys: npt.NDArray[np.int64] = rows[name].to_numpy()
    return keys


@dataclass(slots=True)
class Setting:
    """A query under a load, as the simulator and the oracle see it; alike for all policies."""

    contested: Contested
    load: Profile
    seconds: float
    seed: int
    weights: HotShards
    _imbalances: Vector | None = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of its micro-batches; the last one is keyed."""
        one = self.contested
        picking = [
            Stage(name=f"picked_{kind}", work_s=share * one.picking_s, most_tasks=CORES[1])
            for kind, share in one.kinds.items()
        ]
        keyed = Stage(
            name=one.keyed,
            work_s=one.keyed_rows * one.keyed_s,
            shards=SHARDS,
            weights=self.weights,
            most_tasks=CORES[1],
        )
        return (*picking, keyed)

    @property
    def cost(self) -> BatchCost:
        """The cost of a batch, by the event."""
        work_s = sum(stage.work_s for stage in self.stages)
        return BatchCost(fixed_s=FIXED_S, per_task_s=PER_TASK_S, work_s=work_s)

    @property
    def imbalances(self) -> Vector:
        """delta of a batch on 1, 2, ... cores, with shards divided evenly; a mean over the events.

        A few events are always uneven, but it is the many that need the cores.
        """
        if self._imbalances is None:
            self._imbalances = np.array([self._delta(k + 1) for k in range(CORES[1])])
        return self._imbalances

    def _delta(self, tasks: int) -> float:
        *picking, keyed = self.stages
        even_s = sum(stage.work_s for stage in picking)
        route = even_route(SHARDS, tasks)
        events = self.load.count(round(self.seconds * 1000.0))
        some = np.linspace(0, max(events - 1, 0), _MOMENTS).astype(np.int64)
        moments = np.maximum(self.load.arrival_us(some) / 1e6, _SPAN_S).tolist()
        delta = fmean(imbalance(self.weights(at_s), route, tasks) for at_s in moments)
        return (even_s + delta * keyed.work_s) / (even_s + keyed.work_s)

    @property
    def oracle_segment(self) -> OracleSegment:
        """What the oracle knows of it."""
        return OracleSegment(cost=self.cost, imbalances=self.imbalances)

    @property
    def peak_cores(self) -> int:
        """The fewest cores that hold the target at the highest load, by the micro-batch formula.

        They are planned for a fifth less than the target: without a reserve they would miss it half
        the time. They are the same under every load of a query.
        """
        aim_s, peak, most = _RESERVE * TARGET_S, self.contested.peak, CORES[1]
        steady = setting(self.contested, constant(peak), _STEADY_S, self.seed)
        enough = (
            cores
            for cores, delta in enumerate(steady.imbalances.tolist(), start=1)
            if self.cost.throughput(cores, aim_s, imbalance=delta) >= peak
        )
        return max(CORES[0], next(enough, most))

    def world(self, cores: int) -> World:
        """The whole of it, with as much noise as a machine has."""
        segment = SimulatedSegment(fixed_s=FIXED_S, per_task_s=PER_TASK_S, stages=self.stages)
        return World(
            segments=(segment,),
            profile=self.load,
            seconds=self.seconds,
            cores=cores,
            noise=NOISE,
            odd_batches=ODD_BATCHES,
            prompt=False,
            latency_window_s=3.0,
            seed=self.seed,
        )


@lru_cache(maxsize=2)
def setting_of(query: str, load: str, seconds: float, minute_s: float, seed: int) -> Setting:
    """A query under a load of the contest."""
    return setting(
        QUERIES[query], QUERIES[query].load(load, seconds, minute_s, seed), seconds, seed
    )


def setting(contested: Contested, load: Profile, seconds: float, seed: int) -> Setting:
    """A query under any load."""
    events = NexmarkEvents(load, seed, hot_every=HOT_EVERY)
    return Setting(contested, load, seconds, seed, HotShards(contested, events))
