"""Streams as fluid through shards and cores, a tenth of a second a step.

What is assumed:
- Tuples are divisible; a core serves its shards in proportion to what waits in each. Every operator
  sees the source's tuples (times its ratio) in the step in which they are emitted.
- Back-pressure: the source emits as much as it is offered, but never so much that a core would
  have more than `QUEUE_S` of work waiting (Storm's receive buffer: 1,024 tuples of 1 ms).
- A shard that is being moved is served by its old core until what was pending there is done and
  its state has been sent; what arrives meanwhile waits at the receiver (Elasticutor 3.3).
- Latency is the backlog over the throughput (Little) plus service and M/M/1 wait at each core at
  its load, which the fluid does not see, plus a hop each way for tuples that go to remote cores.
  A patient source holds back what it may not emit, and that counts as backlog too.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.models.queueing.erlang import mean_delay

QUEUE_S = 1.024
HOP_S = 0.0005
"""One way through the network between two nodes."""
_STEADIEST = 0.98
"""Above this load the wait is backlog, and the fluid has it."""

Counts = npt.NDArray[np.int64]
Vector = npt.NDArray[np.float64]


@dataclass(slots=True, eq=False)
class Fluid:
    """Shards as columns, and where their tuples are."""

    route: Counts
    """The core of each shard."""
    work_s: Vector
    """Work of one tuple, per shard."""
    weight: Vector
    """What each shard's operator counts in the latency: 1, or less for one of many branches."""
    cores: int
    pending: Vector
    """Tuples at the cores."""
    waiting: Vector
    """Tuples at the receiver, because their shard is being moved."""
    moving_until_s: Vector
    """When a move ends; 0 where there is none."""
    moving_to: Counts

    @classmethod
    def of(cls, route: Counts, work_s: Vector, weight: Vector, cores: int) -> "Fluid":
        """Empty queues."""
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
        """Work that waits for each core."""
        work = (self.pending + self.waiting) * self.work_s
        return np.asarray(np.bincount(self.route, work, self.cores), np.float64)

    def emission(self, per_tuple: Vector, offered: float, dt_s: float) -> float:
        """Source tuples of this step, of those offered: `per_tuple` of each go to each shard."""
        work = np.bincount(self.route, per_tuple * self.work_s, self.cores)
        room = np.maximum(QUEUE_S + dt_s - self.queued_s(), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = np.where(work > 0.0, room / work, np.inf)
        return float(min(offered, bound.min()))

    def move(self, shards: Counts, cores: Counts, until_s: Vector) -> None:
        """Shards begin to move."""
        self.moving_to[shards] = cores
        self.moving_until_s[shards] = until_s

    def arrive(self, tuples: Vector, now_s: float) -> None:
        """Tuples of a step; moves that are over by now take effect first."""
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
        """Each core works for a step; the tuples done, per shard."""
        work = np.bincount(self.route, self.pending * self.work_s, self.cores)
        share = np.minimum(1.0, dt_s * speed / np.maximum(work, 1e-12))
        done = self.pending * share[self.route]
        self.pending -= done
        return done

    def latency_s(self, per_tuple: Vector, rate: float, far: npt.NDArray[np.bool_]) -> float:
        """Mean time of a tuple in the system at this moment.

        `far` says which shards are served away from their executor's node.
        """
        backlog = float(((self.pending + self.waiting) * self.weight).sum()) / rate
        load = np.bincount(self.route, per_tuple * self.work_s, self.cores) * rate
        wait = mean_delay(np.ones(self.cores), np.minimum(load, _STEADIEST))
        visits = per_tuple * self.weight
        steady = float((visits * self.work_s * (1.0 + wait[self.route])).sum())
        return backlog + steady + 2.0 * HOP_S * float((visits * far).sum())
