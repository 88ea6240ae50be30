"""The imbalance of a segment's tasks: what it is now, and what to expect on other tasks and loads.

delta has two parts. One lasts: a hot shard, or a route that is not balanced further than theta. The
other is chance: the rows of a task vary by the root of their number, so it is the smaller the more
rows a batch has (`models/microbatch/imbalance`). Batches grow with the load, so a constant delta
would expect too much of a higher load.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.control.learning.smoothing import Alpha
from tidegate.control.measurement import Measurement
from tidegate.control.shards.balance import THETA
from tidegate.forecast.remembering import finite
from tidegate.models.microbatch.imbalance import chance_spread

Vector = npt.NDArray[np.float64]


class SegmentImbalance:
    """Learns delta from the batches of a segment."""

    def __init__(self) -> None:
        self._recent = Alpha(0.6)
        self.now = 1.0
        """delta of the last batches."""
        self._slowly = Alpha(0.85)
        self._lasting = 1.0
        self._size = Alpha(0.6)
        self.rows = 0.0
        """The rows of a batch, of the last ones."""
        self._tasks = 1
        self._chance = 0.0
        self._hot = 0.0
        self._keyed = 0.0
        self._named = ""

    def learn(self, delta: float, rows: float, tasks: int) -> None:
        """Learn from one batch."""
        self.now = max(self._recent.update(delta), 1.0)
        self._lasting = self._slowly.update(delta)
        # The mean of 1 / sqrt(rows), because chance follows that.
        self.rows = self._size.update(max(rows, 1.0) ** -0.5) ** -2
        self._tasks = tasks

    def learn_chance(self, chance: float) -> None:
        """Learn c: the part by chance, in multiples of what rows dealt at random would have."""
        self._chance = chance

    def forget_shards(self) -> None:
        """Forget the hottest shard, because the operators have changed."""
        self._hot, self._keyed, self._named = 0.0, 0.0, ""

    def find_hottest(self, measurement: Measurement, segment: str) -> None:
        """Find the hottest shard's share p of its operator's rows, and that operator's of the work.

        Both are those of the operator where the hottest shard matters most.
        """
        inside = [op for op in measurement.operators if op.segment == segment]
        busy_s = sum(op.busy_s for op in inside)
        for operator in inside:
            rows = int(np.sum(operator.shard_rows))
            if rows > 0 and busy_s > 0.0:
                hot = int(np.max(operator.shard_rows)) / rows
                keyed = operator.busy_s / busy_s
                if hot * keyed >= self._hot * self._keyed or self._named == operator.name:
                    self._hot, self._keyed, self._named = hot, keyed, operator.name

    def on(self, cores: int, rows: float | None = None) -> float:
        """The imbalance delta to expect on so many cores once the shards are balanced.

        `rows` is the size of a batch; without it, that of the last ones. Rebalancing is free and
        comes first, so no cores are added for a new imbalance unless it lasts. A route cannot split
        the hottest shard: with a share p of the rows and a task of its own out of k, it takes p k
        times the mean, so the imbalance grows with the tasks.
        """
        return float(self.up_to(cores, rows)[-1])

    def up_to(self, most: int, rows: float | None = None) -> Vector:
        """`on` for 1 to `most` cores."""
        cores = np.arange(1, most + 1, dtype=np.float64)
        lasting, chance = self._terms(cores, self._mended - 1.0)
        size = max(self.rows if rows is None else rows, 1.0)
        return np.asarray(np.minimum(1.0 + lasting + chance / math.sqrt(size), cores + lasting))

    def terms(self, cores: int | None = None) -> tuple[float, float]:
        """The lasting part of delta - 1, and c of the part by chance, c / sqrt(rows per task).

        Without `cores` they are those of the present tasks, as they are.
        """
        if cores is not None:
            lasts, alone = self._terms(np.array([cores], np.float64), self._mended - 1.0)
            return float(lasts[0]), float(alone[0]) / math.sqrt(cores)
        present = self.now - 1.0
        chance = self._explained(present) * float(chance_spread(self._tasks))
        root = math.sqrt(max(self.rows, 1.0))
        return max(present - chance / root, 0.0), chance / math.sqrt(self._tasks)

    def _terms(self, cores: Vector, mended: float) -> tuple[Vector, Vector]:
        """The lasting part of delta - 1 on these cores, and the part by chance of one row."""
        root = math.sqrt(max(self.rows, 1.0))
        c = self._explained(mended)
        chance = c * chance_spread(cores)
        lasting = np.full(len(cores), mended - c * float(chance_spread(self._tasks)) / root)
        fewer = cores < self._tasks
        if fewer.any():
            lasting[fewer] *= self._fewer_tasks(cores[fewer])
        # New routes are balanced only to theta, and the hottest shard cannot be split.
        least = np.where(cores > self._tasks, self._keyed * (THETA - 1.0), 0.0)
        least = np.maximum(least, self._keyed * np.maximum(self._hot * cores - 1.0, 0.0))
        lasting = np.maximum(lasting, least - chance / root)
        return np.maximum(lasting, 0.0), chance

    def _explained(self, beyond: float) -> float:
        """c, or less if that would explain more than the imbalance that there is."""
        alone = float(chance_spread(self._tasks)) / math.sqrt(max(self.rows, 1.0))
        return self._chance if self._chance * alone <= beyond else beyond / alone

    def learned(self) -> dict[str, Any]:
        """What was learned, as plain values."""
        return {
            "imbalance": self.now,
            "lasting": self._lasting,
            "rows": self.rows,
            "chance": self._chance,
            "hottest": [self._hot, self._keyed, self._named],
        }

    def recall(self, learned: Any, tasks: int) -> None:
        """Begin with what an earlier run learned on so many tasks."""
        self.now = max(self._recent.update(finite(learned["imbalance"])), 1.0)
        self._lasting = self._slowly.update(finite(learned["lasting"]))
        rows = finite(learned.get("rows", 0.0))
        self.rows = self._size.update(max(rows, 1.0) ** -0.5) ** -2
        self._chance = finite(learned.get("chance", 0.0))
        self._tasks = max(tasks, 1)
        hottest: Sequence[Any] = learned["hottest"]
        hot, keyed, named = hottest
        self._hot, self._keyed, self._named = finite(hot), finite(keyed), str(named)

    def _fewer_tasks(self, cores: Vector) -> Vector:
        """What is left of the imbalance (delta - 1) on fewer tasks than now.

        The fullest of k tasks has so many standard deviations more rows than the mean, each of the
        root of the rows per task. So fewer tasks are balanced better, by chance alone.
        """
        return np.asarray(chance_spread(cores) / chance_spread(self._tasks))

    @property
    def _mended(self) -> float:
        """The present imbalance, or the lower one that rebalancing will soon reach."""
        if self._hot <= 0.0:
            return self.now
        return min(self.now, max(THETA, self._lasting))
