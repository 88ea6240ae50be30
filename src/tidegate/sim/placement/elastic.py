"""Simulates a topology under one of the paradigms: throughput, latency, state and data moved."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tidegate.control.shards.balance import ShardLoads
from tidegate.errors import AskedWrongly, nearest
from tidegate.sim.placement.fluid import Fluid
from tidegate.sim.placement.key_load import KeyLoad, ShuffledZipf, Stocks
from tidegate.sim.placement.nodes import Nodes
from tidegate.sim.placement.paradigms import PARADIGMS, Paradigm, ShardGroups
from tidegate.sim.placement.split_and_merge import SimulatedRegrouping

STEP_S = 0.1
CONTROL_S = 1.0
"""How often loads are measured, and shards and cores reassigned."""

Counts = npt.NDArray[np.int64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticOperator:
    """One operator of a topology."""

    name: str
    work_s: float
    bytes_in: float
    bytes_out: float
    weight: float = 1.0
    """Its weight in a tuple's latency: one over the number of parallel branches."""
    executors: int | None = None
    """Elastic executors of this operator; by default those of the experiment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A topology, its load, the cluster and the paradigm."""

    operators: tuple[ElasticOperator, ...]
    keys: KeyLoad
    nodes: Nodes = field(default_factory=Nodes)
    paradigm: Paradigm = "executor-centric"
    offered: float = 1.0
    """The offered load, relative to the capacity of all cores."""
    patient: bool = False
    """Whether tuples held up by back-pressure wait at the source and count in the latency; if not,
    they are never emitted."""
    executors: int = 32
    """Elastic executors per operator (y)."""
    shards_each: int = 256
    """Shards per elastic executor (z)."""
    shards: int = 8192
    """Shards per operator in the static and the resource-centric paradigm."""
    shard_bytes: float = 32.0 * 1024
    upstream: int = 32
    """Upstream executors that a resource-centric change must synchronise with."""
    shards_per_synchronisation: int = 1
    """Shards that a resource-centric synchronisation moves; one in the paper."""
    regroup_every_s: float | None = None
    """How often elastic executors are split and merged; with None never, as in the paper."""
    seconds: float = 120.0
    warm_up_s: float = 15.0
    seed: int = 7


@dataclass(frozen=True, slots=True)
class ElasticOutcome:
    """The measurements of a run after its warm-up."""

    throughput: float
    """Source tuples per second."""
    latency_s: float
    state_bytes_per_s: float
    """State that was sent from one node to another."""
    remote_bytes_per_s: float
    """Data between executors and their remote cores."""
    moves: int
    executors: int
    """Groups of shards at the end: executors in the elastic paradigms, operators otherwise."""
    scheduling_ms: float
    """Median time of a decision: allocation, and placement if cores were reassigned."""
    series: tuple[float, ...]
    """Tuples per second, second by second."""


def stock_exchange() -> tuple[ElasticOperator, ...]:
    """The topology of figure 14: a transactor, 6 operators for statistics and 5 for events.

    The paper gives tuple sizes but no costs. It reports 218,600 orders a second on 256 cores, so
    an order costs at most 1.17 ms in total. Here the transactor takes 0.2 ms and each of the others
    0.08 ms, together 1.08 ms. There are 64 executors, two per node.
    """
    names = [f"statistics{n}" for n in range(6)] + [f"events{n}" for n in range(5)]
    behind = [
        ElasticOperator(
            name=name, work_s=0.00008, bytes_in=160.0, bytes_out=32.0, weight=1 / 11, executors=5
        )
        for name in names
    ]
    first = ElasticOperator(
        name="transactor", work_s=0.0002, bytes_in=96.0, bytes_out=160.0, executors=9
    )
    return (first, *behind)


def micro(
    omega: float, paradigm: Paradigm, *, tuple_bytes: float = 128.0, keys: int = 10_000
) -> Experiment:
    """Elasticutor's micro-benchmark (5.1) with omega shuffles of the keys per minute."""
    operator = ElasticOperator(
        name="calculator", work_s=0.001, bytes_in=tuple_bytes, bytes_out=tuple_bytes
    )
    return Experiment(
        operators=(operator,),
        keys=ShuffledZipf(keys=keys, shuffles_per_minute=omega),
        paradigm=paradigm,
    )


def stocks(paradigm: Paradigm) -> Experiment:
    """The stock exchange (5.4), with 12 operators that share the cores."""
    return Experiment(
        operators=stock_exchange(),
        keys=Stocks(),
        paradigm=paradigm,
        shards_each=64,
        shards=2048,
    )


def run(experiment: Experiment) -> ElasticOutcome:
    """Simulate an experiment."""
    return _Run(experiment).run()


class _Run:
    """The state of one experiment."""

    def __init__(self, experiment: Experiment) -> None:
        if experiment.paradigm not in PARADIGMS:
            hint = nearest(experiment.paradigm, PARADIGMS)
            raise AskedWrongly(f"there is no paradigm '{experiment.paradigm}'{hint}")
        self._what = experiment
        self._nodes = experiment.nodes
        elastic = experiment.paradigm in ("executor-centric", "naive-ec")
        each = experiment.executors * experiment.shards_each if elastic else experiment.shards
        operators = experiment.operators
        groups = [(one.executors or experiment.executors) if elastic else 1 for one in operators]
        first = np.cumsum([0, *groups])
        hashed = np.random.default_rng(experiment.seed)
        # Each operator hashes keys to shards of its own.
        self._shard_of = [hashed.integers(0, each, experiment.keys.keys) for _ in operators]
        self._each = each
        per_group = np.repeat(np.arange(len(operators)), groups)
        work_s = np.array([operator.work_s for operator in operators])
        weight = np.array([operator.weight for operator in operators])
        passing = np.array([operator.bytes_in + operator.bytes_out for operator in operators])
        group_of = np.concatenate(
            [np.arange(each) * many // each + first[n] for n, many in enumerate(groups)]
        )
        self._bytes = np.repeat(passing, each)
        self._groups = ShardGroups(
            self._nodes,
            group_of,
            work_s[per_group],
            passing[per_group],
            experiment.shard_bytes,
            naive=experiment.paradigm == "naive-ec",
            operator_of=per_group,
        )
        self._regrouping: SimulatedRegrouping | None = None
        if elastic and experiment.regroup_every_s is not None:
            self._regrouping = SimulatedRegrouping(self._groups, experiment.regroup_every_s)
        self._elastic = elastic
        self._capacity = self._nodes.cores / float(work_s.sum())
        self._per_tuple = self._arrivals(0)
        load = np.bincount(group_of, minlength=len(per_group)) / each * work_s[per_group]
        route = self._groups.begin(0.9 * self._capacity * load)
        self._fluid = Fluid.of(
            route, np.repeat(work_s, each), np.repeat(weight, each), self._nodes.cores
        )
        self._loads = ShardLoads(half_life_s=1.0)
        self._seen = np.zeros(len(route))
        self._paused_until_s = 0.0
        self._planned: Counts | None = None
        self._moved_bytes = 0.0
        self._moves = 0
        self._at_source = 0.0

    def _arrivals(self, era: int) -> Vector:
        """Tuples of each shard per source tuple."""
        shares = self._what.keys.shares(era)
        return np.concatenate(
            [np.bincount(shards, shares, self._each) for shards in self._shard_of]
        )

    def run(self) -> ElasticOutcome:
        what, fluid = self._what, self._fluid
        steps = round(what.seconds / STEP_S)
        warm = round(what.warm_up_s / STEP_S)
        control = round(CONTROL_S / STEP_S)
        emitted = np.zeros(steps)
        latency = np.zeros(steps)
        remote = np.zeros(steps)
        era = 0
        counted = (0.0, 0)
        for step in range(steps):
            now_s = step * STEP_S
            if step == warm:
                counted = (self._moved_bytes, self._moves)
            if (current := what.keys.era(now_s)) != era:
                era = current
                self._per_tuple = self._arrivals(era)
            self._resume(now_s)
            offered = what.offered * self._capacity * STEP_S + self._at_source
            tuples = 0.0
            if self._planned is None:
                tuples = fluid.emission(self._per_tuple, offered, STEP_S)
            if what.patient:
                self._at_source = offered - tuples
            fluid.arrive(tuples * self._per_tuple, now_s)
            self._seen += tuples * self._per_tuple
            far = self._groups.far(fluid.route) if self._elastic else np.zeros(1, bool)
            done = fluid.serve(self._speed(far), STEP_S)
            emitted[step] = float(done[: self._each].sum())
            remote[step] = float((done * self._bytes * far).sum())
            latency[step] = self._latency_s(emitted[step] / STEP_S, far)
            if (step + 1) % control == 0:
                self._control(now_s + STEP_S)
        seen = emitted[warm:]
        seconds = len(seen) * STEP_S
        times = self._groups.scheduling_s
        return ElasticOutcome(
            float(seen.sum()) / seconds,
            float(
                latency[warm:].mean() if what.patient else np.average(latency[warm:], weights=seen)
            ),
            (self._moved_bytes - counted[0]) / seconds,
            float(remote[warm:].sum()) / seconds,
            self._moves - counted[1],
            len(self._groups.members),
            1e3 * float(np.median(times)) if times else 0.0,
            tuple((emitted.reshape(-1, control).sum(axis=1) / CONTROL_S).tolist()),
        )

    def _latency_s(self, rate: float, far: npt.NDArray[np.bool_]) -> float:
        """Latency now. With a patient source Little's law needs the offered rate."""
        if self._what.patient:
            rate = self._what.offered * self._capacity
        if rate <= 0.0:
            return 0.0
        return self._fluid.latency_s(self._per_tuple, rate, far) + self._at_source / rate

    def _speed(self, far: npt.NDArray[np.bool_]) -> Vector:
        """The speed of each core: remote ones are slower if their data exceed a node's network."""
        speed = np.ones(self._nodes.cores)
        if not far.any():
            return speed
        fluid = self._fluid
        tuples = np.where(far, fluid.pending, 0.0)
        # No core can take more in a step than it can process.
        tuples *= np.minimum(
            1.0,
            STEP_S
            / np.maximum(
                np.bincount(fluid.route, fluid.pending * fluid.work_s, fluid.cores), 1e-12
            ),
        )[fluid.route]
        sent = tuples * self._bytes
        home = self._groups.home[self._groups.group_of]
        there = fluid.route // self._nodes.cores_each
        count = self._nodes.count
        traffic = np.bincount(home, sent, count) + np.bincount(there, sent, count)
        squeeze = np.minimum(
            1.0, self._nodes.bandwidth_bytes_per_s * STEP_S / np.maximum(traffic, 1e-12)
        )
        factor = np.minimum(squeeze[home], squeeze[there])
        work = np.bincount(fluid.route, fluid.pending * fluid.work_s, fluid.cores)
        slowed = np.bincount(
            fluid.route, fluid.pending * fluid.work_s * np.where(far, factor, 1.0), fluid.cores
        )
        return np.where(work > 0.0, slowed / np.maximum(work, 1e-12), 1.0)

    def _control(self, now_s: float) -> None:
        """Measure loads, and reassign shards and cores as far as the paradigm allows."""
        if self._planned is None:
            self._loads.observe(self._seen, now_s)
        if self._regrouping is not None:
            self._regrouping.look(now_s, self._seen / CONTROL_S * self._fluid.work_s)
        rates = np.asarray(np.bincount(self._groups.group_of, self._seen / CONTROL_S), np.float64)
        self._seen = np.zeros_like(self._seen)
        loads = self._loads.loads
        if self._what.paradigm == "static" or self._planned is not None or loads is None:
            return
        work = loads * self._fluid.work_s
        if not rates.any():
            return
        fluid = self._fluid
        route = np.where(fluid.moving_until_s > 0.0, fluid.moving_to, fluid.route)
        new = self._groups.rescale(route, rates, work)
        moved = np.flatnonzero(new != route)
        if len(moved) == 0:
            return
        source = route[moved] // self._nodes.cores_each
        target = new[moved] // self._nodes.cores_each
        carried = np.where(source != target, self._what.shard_bytes, 0.0)
        self._moved_bytes += float(carried.sum())
        self._moves += len(moved)
        sent_s = self._nodes.transfer_s(source, carried)
        if self._elastic:
            turn = 1 if self._nodes.together else _turns(self._groups.group_of[moved])
            begun_s = now_s + fluid.queued_s()[route[moved]]
            until_s = begun_s + self._nodes.handshake_s * turn + sent_s
            fluid.move(moved, new[moved], until_s)
            return
        each = len(moved) if self._nodes.together else self._what.shards_per_synchronisation
        rounds = -(-len(moved) // each)
        handshakes_s = rounds * self._what.upstream * self._nodes.handshake_s
        drained_s = now_s + float(fluid.queued_s().max())
        self._planned = new
        self._paused_until_s = drained_s + handshakes_s + float(sent_s.max())

    def _resume(self, now_s: float) -> None:
        """At the end of a resource-centric synchronisation, apply the new route and resume."""
        if self._planned is not None and now_s >= self._paused_until_s:
            self._fluid.route[:] = self._planned
            self._fluid.moving_to[:] = self._planned
            self._planned = None


def _turns(groups: Counts) -> Counts:
    """Number the moves 1, 2, 3, ... within each executor, which moves its shards one by one."""
    order = np.argsort(groups, kind="stable")
    begins = np.flatnonzero(np.diff(groups[order], prepend=-1))
    turn = np.empty(len(groups), np.int64)
    turn[order] = np.arange(len(groups)) - np.repeat(begins, np.diff(begins, append=len(groups)))
    return turn + 1
