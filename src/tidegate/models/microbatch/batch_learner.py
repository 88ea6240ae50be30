"""Learns what a micro-batch costs from batches that ran, and says how sure it is.

D = a0 + a1 k + w (delta N / k) is linear in (a0, a1, w), so ordinary least squares does it: from
sums alone, in constant memory, with older batches fading when the load's nature may change. Costs
cannot be negative, so the fit is the best one among those with none below zero.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.models.microbatch.batch_cost import BatchCost

Vector = npt.NDArray[np.float64]

_UNKNOWN = 1e-9
"""Share of a direction's length below which the batches seen say nothing about it."""


class NotLearnedYet(TidegateError):
    """The batches seen so far cannot answer; the message says what they lack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationForecast:
    """The duration of one batch that has not run, with the interval it should fall in."""

    mean_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BatchFit:
    """The learned cost and how sure it is."""

    cost: BatchCost
    covariance: npt.NDArray[np.float64]
    """Of (a0, a1, w) in that order; zero for a cost that is held at zero; infinite when as many
    costs as batches leave no residual to judge by."""
    residual_s: float
    """Standard deviation of one batch around the fit."""
    batches: float
    """Batches behind it, the faded ones counted in part."""


class BatchLearner:
    """Online least squares over (rows, tasks, imbalance, duration)."""

    def __init__(self, *, remember: float = 1.0) -> None:
        """`remember` is what a batch keeps of its weight as the next one comes; 1 keeps all."""
        if not 0.0 < remember <= 1.0:
            raise AskedWrongly(f"remember must be above 0 and at most 1, but is {remember}")
        self._remember = remember
        self._moments = np.zeros((3, 3))
        self._product = np.zeros(3)
        self._square = 0.0
        self._weight = 0.0
        self._weight_squares = 0.0

    def observe(
        self, *, rows: float, tasks: int, duration_s: float, imbalance: float = 1.0
    ) -> None:
        """Learn from one batch that ran."""
        values = (rows, duration_s, imbalance)
        if not all(math.isfinite(v) and v >= 0.0 for v in values) or tasks < 1 or imbalance < 1.0:
            raise AskedWrongly(
                f"a batch of {rows} rows on {tasks} tasks (imbalance {imbalance}) that took"
                f" {duration_s} s cannot be learned from; give measured values"
            )
        x = _regressors(rows, tasks, imbalance)
        keep = self._remember
        self._moments = keep * self._moments + np.outer(x, x)
        self._product = keep * self._product + x * duration_s
        self._square = keep * self._square + duration_s * duration_s
        self._weight = keep * self._weight + 1.0
        self._weight_squares = keep * keep * self._weight_squares + 1.0

    @property
    def batches(self) -> float:
        """How many equally weighted batches the memory is worth."""
        return self._weight**2 / self._weight_squares if self._weight else 0.0

    def fit(self) -> BatchFit:
        """The cost; NotLearnedYet while batches differ in too little to tell a0, a1 and w apart."""
        known = self._known_directions()
        if known.shape[1] < 3:
            raise NotLearnedYet(
                "the batches seen so far are too alike to tell the fixed cost, the cost per task"
                " and the work per row apart; run some with another number of tasks and of rows"
            )
        best: tuple[float, Vector, tuple[int, ...]] | None = None
        for free in itertools.chain.from_iterable(
            itertools.combinations(range(3), size) for size in (3, 2, 1, 0)
        ):
            costs = self._solve(free)
            error = self._error(costs)
            if costs.min() >= 0.0 and (best is None or error < best[0]):
                best = (error, costs, free)
            if best is not None and len(free) == 3:
                break
        assert best is not None  # all costs zero is always allowed
        error, costs, free = best
        variance = self._variance(error, len(free))
        covariance = np.zeros((3, 3))
        if free:
            among = np.ix_(free, free)
            scale = np.sqrt(np.diag(self._moments)[list(free)])
            inverse = np.linalg.inv(self._moments[among] / np.outer(scale, scale))
            inverse /= np.outer(scale, scale)
            covariance[among] = variance * inverse if math.isfinite(variance) else math.inf
        return BatchFit(
            cost=BatchCost(
                fixed_s=float(costs[0]), per_task_s=float(costs[1]), work_s=float(costs[2])
            ),
            covariance=covariance,
            residual_s=math.sqrt(variance),
            batches=self.batches,
        )

    def forecast(
        self, *, rows: float, tasks: int, imbalance: float = 1.0, confidence: float = 0.95
    ) -> DurationForecast:
        """The duration of such a batch, with an interval that holds it with this confidence.

        What the batches seen determine is answered even while `fit` cannot be: with one number of
        tasks so far, any number of rows on as many tasks. Anything else is NotLearnedYet, never a
        guess.
        """
        x = _regressors(rows, tasks, imbalance)
        known = self._known_directions()
        unit = x / self._scale()
        if np.linalg.norm(unit - known @ (known.T @ unit)) > 1e-6 * np.linalg.norm(unit):
            raise NotLearnedYet(
                f"nothing is known yet about {rows:g} rows on {tasks} tasks: the batches seen so"
                " far differ in too little; run one like it first"
            )
        if known.shape[1] == 3:
            fit = self.fit()
            cost = fit.cost
            costs = np.array([cost.fixed_s, cost.per_task_s, cost.work_s])
            free = int(np.count_nonzero(costs))
            leverage = fit.covariance
            spread = float(x @ leverage @ x) if np.all(np.isfinite(leverage)) else math.inf
            variance = fit.residual_s**2
        else:
            free = known.shape[1]
            scaled = self._moments / np.outer(self._scale(), self._scale())
            inverse = known @ np.linalg.inv(known.T @ scaled @ known) @ known.T
            costs = (inverse @ (self._product / self._scale())) / self._scale()
            variance = self._variance(self._error(costs), free)
            spread = variance * float(unit @ inverse @ unit)
        mean_s = max(0.0, float(x @ costs))
        freedom = self.batches - free
        half_s = math.inf
        if freedom > 0.0 and math.isfinite(spread):
            quantile = float(special.stdtrit(freedom, 0.5 + confidence / 2.0))
            half_s = quantile * math.sqrt(variance + spread)
        return DurationForecast(
            mean_s=mean_s, low_s=max(0.0, mean_s - half_s), high_s=mean_s + half_s
        )

    def _scale(self) -> Vector:
        """Length of each regressor, so that seconds per row and per task compare."""
        lengths = np.sqrt(np.diag(self._moments))
        return np.where(lengths > 0.0, lengths, 1.0)

    def _known_directions(self) -> npt.NDArray[np.float64]:
        """An orthonormal basis (columns) of what the batches seen can tell, in scaled units."""
        scale = self._scale()
        lengths, directions = np.linalg.eigh(self._moments / np.outer(scale, scale))
        known: npt.NDArray[np.float64] = directions[:, lengths > _UNKNOWN]
        return known

    def _solve(self, free: tuple[int, ...]) -> Vector:
        """Least squares with the costs outside `free` held at zero."""
        costs = np.zeros(3)
        if free:
            chosen = list(free)
            scale = np.sqrt(np.diag(self._moments)[chosen])
            moments = self._moments[np.ix_(chosen, chosen)] / np.outer(scale, scale)
            costs[chosen] = np.linalg.solve(moments, self._product[chosen] / scale) / scale
        return costs

    def _error(self, costs: Vector) -> float:
        """Weighted sum of squared residuals; cancellation may leave a tiny negative, so clip."""
        error = self._square - 2.0 * costs @ self._product + costs @ self._moments @ costs
        return max(0.0, float(error))

    def _variance(self, error: float, free: int) -> float:
        """Of one batch around the fit; infinite when nothing is left to estimate it from."""
        freedom = self.batches - free
        return error / self._weight * self.batches / freedom if freedom > 0.0 else math.inf


def _regressors(rows: float, tasks: int, imbalance: float) -> Vector:
    return np.array([1.0, tasks, rows * imbalance / tasks])
