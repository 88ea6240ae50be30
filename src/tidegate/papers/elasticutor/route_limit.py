"""How much any route can gain while keys are shuffled, if it holds for a whole micro-batch.

All rows of a batch arrive when Spark asks for them (`apps/full_source.py`), so they are of one era
between two shuffles. Two bounds for what is measured on Spark: a route that suits the rows of each
batch itself, and one that suits those of the batch before, which is wrong once in every era.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.apps.paradigms import route_anew
from tidegate.control.shards.balance import imbalance
from tidegate.control.shards.route import even_route

Counts = npt.NDArray[np.int64]
Delta = Callable[[Counts], float]
"""Given the rows of each shard in the next batch, the imbalance of that batch."""


def least_delta(rows: Counts, tasks: int) -> float:
    """The imbalance that no route can be below, because of the hottest shard alone."""
    return max(1.0, float(rows.max()) * tasks / float(rows.sum()))


@dataclass(frozen=True, slots=True)
class Gains:
    """Throughput over that of a static route, behind a source that is always full."""

    known: float
    """With the best route for the rows of each batch. No route per batch gains more."""
    learned: float
    """With the best route for the rows of the batch before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShuffledKeys:
    """Batches of rows whose keys are shuffled."""

    skew: float
    tasks: int
    batch_s: float
    """How long the rows of a batch take if they are spread evenly over the tasks."""
    fixed_s: float
    """What a batch costs besides."""
    shards: int
    row_s: float = 1e-3
    keys: int = 10_000
    seconds: float = 120.0

    def gains(self, omega: float, seed: int = 1) -> Gains:
        """Those for one way to hash keys to shards, and one course of shuffles."""
        static = self._rows_per_s(omega, seed, self._static())
        return Gains(
            known=self._rows_per_s(omega, seed, lambda rows: least_delta(rows, self.tasks))
            / static,
            learned=self._rows_per_s(omega, seed, self._learned()) / static,
        )

    def mean_gains(self, omega: float, hashes: int) -> Gains:
        """The mean over several hashes."""
        found = [self.gains(omega, seed) for seed in range(hashes)]
        return Gains(
            known=float(np.mean([one.known for one in found])),
            learned=float(np.mean([one.learned for one in found])),
        )

    def _static(self) -> Delta:
        route = even_route(self.shards, self.tasks)
        return lambda rows: imbalance(rows, route, self.tasks)

    def _learned(self) -> Delta:
        route = even_route(self.shards, self.tasks)

        def delta(rows: Counts) -> float:
            nonlocal route
            before, route = route, route_anew(rows, self.tasks)
            return imbalance(rows, before, self.tasks)

        return delta

    def _rows_per_s(self, omega: float, seed: int, delta: Delta) -> float:
        """Rows per second; eras and rows are drawn by their number, so that all ways get the same.

        Batches in which the first route has just been learned count as well.
        """
        weights: npt.NDArray[np.float64] = np.arange(1, self.keys + 1.0) ** -self.skew
        weights /= weights.sum()
        shard_of = np.random.default_rng([seed, 0]).integers(0, self.shards, self.keys)
        count = max(1, round(self.tasks * self.batch_s / self.row_s))
        period_s = 60.0 / omega if omega > 0.0 else np.inf
        era, popular = -1, weights
        now_s, batches = 0.0, 0
        while now_s < self.seconds:
            if era != int(now_s // period_s):
                era = int(now_s // period_s)
                shuffled = np.random.default_rng([seed, 1, era]).permutation(self.keys)
                popular = np.bincount(shard_of[shuffled], weights, self.shards).astype(np.float64)
            rows = np.random.default_rng([seed, 2, batches]).multinomial(count, popular)
            now_s += self.fixed_s + self.batch_s * delta(rows)
            batches += 1
        return batches * count / now_s
