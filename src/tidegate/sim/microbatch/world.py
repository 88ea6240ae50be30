"""The description of a simulated pipeline, its machines and its load."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tidegate.control.shedding.classes import Worth
from tidegate.errors import AskedWrongly
from tidegate.sim.microbatch.cluster import ClusterWorld
from tidegate.workload.keys import Keys
from tidegate.workload.profile import Profile

Vector = npt.NDArray[np.float64]

_KEYS_SAMPLED = 20_000


class ShardWeights(Protocol):
    """How the rows of a keyed stage are spread over its shards, by the time since the start."""

    def __call__(self, at_s: float, /) -> Vector:
        """One weight per shard; they add up to 1."""
        ...


def keyed_weights(keys: Keys, shards: int, seed: int = 0) -> ShardWeights:
    """Shard weights of a key distribution, whose hot keys may change over time."""
    eras = (0, *keys.changes_ms)
    rows = np.arange(_KEYS_SAMPLED, dtype=np.int64)
    weights: list[Vector] = []
    for begin_ms in eras:
        arrival_us = np.full(_KEYS_SAMPLED, begin_ms * 1000, np.int64)
        chosen = keys.at(rows, arrival_us, seed)
        hashed = (chosen.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)
        counts = np.bincount((hashed % np.uint64(shards)).astype(np.int64), minlength=shards)
        weights.append(np.asarray(counts / counts.sum(), np.float64))

    def at(at_s: float) -> Vector:
        return weights[int(np.searchsorted(np.array(eras[1:]), at_s * 1000, side="right"))]

    return at


class Speedup(Protocol):
    """How many times as fast as one task so many tasks are."""

    def __call__(self, tasks: int, /) -> float:
        """The factor; `tasks` itself where work scales without loss."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """An operator of a segment."""

    name: str
    work_s: float
    """Core seconds per row of the segment, on one task."""
    speedup: Speedup | None = None
    """How it scales; None: without loss."""
    shards: int = 0
    """Number of shards; 0 for a map, whose tasks are always balanced."""
    weights: ShardWeights | None = None
    most_tasks: int | None = None
    row_bytes: float = 0.0
    """Memory for a row while its task works on it, on a simulated cluster whose nodes have one."""
    speeds: tuple[float, ...] = ()
    """For a map on executors of several speeds: that of each task, in turn; empty: all are 1."""

    def row_s(self, tasks: int) -> float:
        """Core seconds per row on so many tasks: more, where they are not as fast as their sum."""
        return self.work_s if self.speedup is None else self.work_s * tasks / self.speedup(tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSegment:
    """One streaming query: what its batches cost, and where its rows come from."""

    name: str = "main"
    fixed_s: float
    per_task_s: float = 0.0
    least_s: float = 0.0
    """The time of its tasks that a batch takes at least: other work runs beside them."""
    gather_s: float = 0.0
    """c_s: core seconds to read a row from the source, whether it is then kept or shed."""
    stages: tuple[Stage, ...]
    trigger_s: float = 0.0
    after: str | None = None
    """The segment that feeds it; None: it reads a source."""
    profile: Profile | None = None
    """The load of a source of its own; None: it reads the world's."""
    backlog_rows: float = 0.0
    """Rows that are in its own source at the start."""
    limit_rows: int | None = None
    """Rows that one batch takes from its source at most (`maxOffsetsPerTrigger`); None: all."""
    partitions: int | None = None
    """Partitions of its source, with as many rows each, which are told as Kafka tells them. Its
    first stage runs in the tasks that read, one for each. None: the source has no partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A simulated pipeline with its machines and load."""

    segments: tuple[SimulatedSegment, ...]
    profile: Profile
    seconds: float
    cores: int
    """Cores at the start."""
    backlog_rows: float = 0.0
    """Rows that are in the source at the start; they are no part of the arrival rate."""
    tick_s: float = 1.0
    bucket_s: float = 0.01
    """Arrivals are counted by this much time. It is whole milliseconds; wider is quicker."""
    grant_s: float = 0.0
    noise: float = 0.05
    """Spread of a batch's duration, as a share of it."""
    poisson: bool = False
    odd_batches: float = 0.0
    """Share of batches that take three times as long (garbage collection)."""
    prompt: bool = True
    """Whether arrivals are known at once. If not, they are known as late as on Spark: those of a
    batch once its first stage is over."""
    stalls: tuple[tuple[float, float], ...] = ()
    """Spans (begin, end) in which nothing is measured, so that the measurements are stale."""
    class_shares: Mapping[str, float] = field(default_factory=dict)
    """The classes of the source's rows, each with its share of the rows."""
    worths: Mapping[str, Worth] = field(default_factory=dict)
    """What the rows of each class are worth."""
    residuals: tuple[float, ...] = ()
    """Logarithms of factors on the duration, of which each batch draws one in the place of `noise`:
    a machine's odd batches are longer than a normal distribution has them."""
    paces: tuple[tuple[float, float], ...] = ()
    """From each of these seconds on, batches take so many times as long: a machine is not equally
    fast all the time."""
    latency_window_s: float = 0.0
    """A tick's latency is that of the batches that ended within so long; 0: during the tick."""
    cold_s: float = 0.0
    """How much longer the first batch of each segment takes: workers start, and code is loaded and
    compiled. It is no work on rows, and more cores do not shorten it."""
    cold_executor_s: float = 0.0
    """The same of a segment's first batch after more cores were granted."""
    by_chance: bool = False
    """Whether the rows of a batch fall on its shards by chance, as on Spark; if not, each shard
    gets exactly its share."""
    cluster: ClusterWorld | None = None
    """A cluster with nodes of its own, which grants cores in the place of `grant_s`; None: cores
    are alike, never fail, and come after `grant_s`."""
    foreign: bool = False
    """Whether it is a query of others, which has one segment: its tasks are the granted cores, and
    a meter knows nothing of operators, imbalance and parts of a batch."""
    seed: int = 1
    starts_s: float = 1_700_000_000.0
    """The epoch second of the start."""

    def pace(self, at_s: float) -> float:
        """How many times as long batches take that begin at this time."""
        place = bisect_right(self.paces, (at_s, math.inf)) - 1
        return self.paces[max(place, 0)][1] if self.paces else 1.0

    def __post_init__(self) -> None:
        if not self.segments or self.seconds < self.tick_s:
            raise AskedWrongly("a simulated pipeline needs a segment and at least one tick")
        if self.foreign and len(self.segments) > 1:
            raise AskedWrongly(
                f"a query of others is one segment, not {len(self.segments)}; leave foreign out"
            )
        if self.bucket_s < 0.001:
            raise AskedWrongly(
                f"buckets of {self.bucket_s:g} s are too short; give at least a millisecond"
            )
        if self.class_shares and abs(sum(self.class_shares.values()) - 1.0) > 1e-9:
            raise AskedWrongly(
                f"the shares of the classes add up to {sum(self.class_shares.values()):g}; they"
                " must add up to 1"
            )
