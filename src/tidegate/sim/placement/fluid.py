"""A fluid model of tuples in shards and cores, in steps of a tenth of a second.

Assumptions:
- Tuples are divisible, and a core serves its shards in proportion to their queues. Every operator
  gets the source's tuples (times its ratio) in the step in which they are emitted.
- Back-pressure: the source emits what is offered, as long as no core gets more than `QUEUE_S` of
  queued work (Storm's receive buffer: 1,024 tuples of 1 ms).
- While a shard moves, its old core works off the pending tuples and its state is sent. Tuples that
  arrive in the meantime wait at the receiver (Elasticutor 3.3).
- Latency is the backlog over the throughput (Little's law), plus service and M/M/1 wait at each
  core's load, which the fluid model does not include, plus a hop each way for tuples on remote
  cores. What a patient source holds back counts as backlog too.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.models.queueing.erlang import mean_delay

QUEUE_S = 1.024
HOP_S = 0.0005
"""One-way network latency between two nodes."""
_STEADIEST = 0.98
"""Cap on the load in the M/M/1 wait: above it the wait is backlog, which the fluid includes."""

Counts = npt.NDArray[np.int64]
Vector = npt.NDArray[np.float64]


@dataclass(slots=True, eq=False)
class Fluid:
    """Shards as columns, with their queued tuples."""

    route: Counts
    """The core of each shard."""
    work_s: Vector
    """Work of one tuple, per shard."""
    weight: Vector
    """The weight of each shard's operator in the latency: 1, or less for one of many branches."""
    cores: int
    pending: Vector
    """Tuples queued at the shard's core."""
    waiting: Vector
    """Tuples held at the receiver because their shard is moving."""
    moving_until_s: Vector
    """When the shard's move ends; 0 if it does not move."""
    moving_to: Counts

    @classmethod
    def of(cls, route: Counts, work_s: Vector, weight: Vector, cores: int) -> "Fluid":
        """A model with empty queues."""
        none = np.zeros(len(route))
        return cls(
            route.copy(),
            work_s,
            weight,
            cores,
            none.copy(),
            none.copy(),
            none.copy(),
            route.copy(),
        )

    def queued_s(self) -> Vector:
        """Seconds of work queued for each core."""
        work = (self.pending + self.waiting) * self.work_s
        return np.asarray(np.bincount(self.route, work, self.cores), np.float64)

    def emission(self, per_tuple: Vector, offered: float, dt_s: float) -> float:
        """How many of the offered source tuples are emitted in this step.

        Each of them causes `per_tuple` tuples at each shard.
        """
        work = np.bincount(self.route, per_tuple * self.work_s, self.cores)
        room = np.maximum(QUEUE_S + dt_s - self.queued_s(), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = np.where(work > 0.0, room / work, np.inf)
        return float(min(offered, bound.min()))

    def move(self, shards: Counts, cores: Counts, until_s: Vector) -> None:
        """Start to move shards to other cores."""
        self.moving_to[shards] = cores
        self.moving_until_s[shards] = until_s

    def arrive(self, tuples: Vector, now_s: float) -> None:
        """Add the tuples of a step, after completing the moves that have ended."""
        over = (self.moving_until_s > 0.0) & (self.moving_until_s <= now_s)
        if over.any():
            self.route[over] = self.moving_to[over]
            self.pending[over] += self.waiting[over]
            self.waiting[over] = 0.0
            self.moving_until_s[over] = 0.0
        held = self.moving_until_s > 0.0
        self.waiting += np.where(held, tuples, 0.0)
        self.pending += np.where(held, 0.0, tuples)

    def serve(self, speed: Vector, dt_s: float) -> Vector:
        """Let each core work for a step; return the completed tuples per shard."""
        work = np.bincount(self.route, self.pending * self.work_s, self.cores)
        share = np.minimum(1.0, dt_s * speed / np.maximum(work, 1e-12))
        done = self.pending * share[self.route]
        self.pending -= done
        return done

    def latency_s(self, per_tuple: Vector, rate: float, far: npt.NDArray[np.bool_]) -> float:
        """Mean latency of a tuple at present; `far` marks shards served by remote cores."""
        backlog = float(((self.pending + self.waiting) * self.weight).sum()) / rate
        load = np.bincount(self.route, per_tuple * self.work_s, self.cores) * rate
        wait = mean_delay(np.ones(self.cores), np.minimum(load, _STEADIEST))
        visits = per_tuple * self.weight
        steady = float((visits * self.work_s * (1.0 + wait[self.route])).sum())
        return backlog + steady + 2.0 * HOP_S * float((visits * far).sum())
