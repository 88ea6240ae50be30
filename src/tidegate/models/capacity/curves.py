"""A capacity curve fitted to samples, which learns online (MST III-A, III-B).

Both shapes can turn negative, or fall again, between or beyond the samples. Such a fit is refused:
a scheduler would be led to a pole, or to machine counts beyond the maximum.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.models.capacity.least_squares import least_squares, rising_least_squares
from tidegate.models.capacity.samples import Samples
from tidegate.models.capacity.shapes import Shape, Tally

Vector = NDArray[np.float64]

BEND_TOLERANCE = 0.02
"""A curve may fall this share below its highest earlier point before it counts as bent back: noise
tilts the fit of an application that does not scale (the paper's VHT) by about as much."""


class FitRefused(TidegateError):
    """The least-squares curve turns negative or bends back inside the range."""


class CapacityCurve:
    """One of the two curves, with its weights and residual variance; it learns online (III-B)."""

    def __init__(
        self, shape: Shape, tally: Tally, max_machines: int, *, constrained: bool = False
    ) -> None:
        """Use `fit` instead. `constrained` keeps the curve rising; else a bad fit is refused."""
        self.shape = shape
        self.max_machines = max_machines
        self.constrained = constrained
        self._tally = tally
        self._stale = False
        self._solve()

    @property
    def weights(self) -> Vector:
        """w0, w1, ... of eq. 2 or eq. 3."""
        self._refresh()
        return self._weights.copy()

    @property
    def residual_variance(self) -> float:
        """sigma_tau^2 of eq. 6: squared residuals over samples less weights."""
        self._refresh()
        return self._residual_variance

    @property
    def samples(self) -> int:
        """How many samples the curve is fitted to."""
        return self._tally.size

    @property
    def machines(self) -> set[int]:
        """The machine counts of the samples."""
        return self._tally.machines

    def mean(self, m: ArrayLike) -> Vector:
        """tau(m), eq. 2 or eq. 3."""
        self._refresh()
        return self.shape.throughput(self._weights, np.asarray(m, dtype=np.float64))

    def variance(self, m: ArrayLike) -> Vector:
        """Eq. 7's variance: the same at every m."""
        return np.full(np.shape(m), self.residual_variance)

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the residuals: samples less the weights that were free to move."""
        self._refresh()
        return max(self._tally.size - int(self._directions.shape[1]), 1)

    @property
    def noise(self) -> float:
        """The deviation of a sample as a share of the curve.

        Eq. 6 has one deviation for all counts, but that of a measured throughput grows with it.
        """
        self._refresh()
        squares = self._tally.relative_squares(self.shape, self._weights)
        return float(np.sqrt(squares / self.freedom))

    def standard_error(self, m: ArrayLike) -> Vector:
        """Standard error of tau(m), the curve itself: what eq. 7 leaves out.

        The weights are estimates, and the further m is from the samples, the more their errors
        count: the variance is g' C g, with g the derivatives of tau by the weights and C the
        covariance of the weights. With the derivatives J at the samples and the variances V of
        these, C = A J' V J A, where A = (J' J)^-1. Model 1 is linear in its weights only near the
        solution, so for it this is an approximation. The weights of a curve that was kept from
        falling vary along the edges that it is a sum of.
        """
        self._refresh()
        counts, n, _, _ = self._tally.columns()
        slopes = self.shape.slopes(self._weights, counts) @ self._directions
        scale = np.maximum(np.abs(slopes).max(axis=0), 1e-300)
        design = slopes / scale
        variances = n * (self.noise * self.mean(counts)) ** 2
        inverse = np.linalg.pinv(design.T @ (design * n[:, None]))
        covariance = inverse @ (design.T @ (design * variances[:, None])) @ inverse
        at = np.asarray(m, dtype=np.float64)
        rows = self.shape.slopes(self._weights, at) @ self._directions / scale
        return np.asarray(np.sqrt(np.maximum(((rows @ covariance) * rows).sum(axis=-1), 0.0)))

    def quantile(self, m: ArrayLike, probability: float) -> Vector:
        """Quantile of eq. 7's normal distribution."""
        return self.mean(m) + float(ndtri(probability)) * np.sqrt(self.variance(m))

    def observe(self, m: int, throughput: float) -> None:
        """Add a saturated interval; the weights are computed when they are next needed.

        If the curve then turns negative or falls, it is refitted among the rising curves: a running
        scheduler needs an answer, so only the first fit may be refused.
        """
        self._tally.add(m, throughput)
        self._stale = True

    def _refresh(self) -> None:
        if self._stale:
            self._stale = False
            self._solve(refuse=False)

    def _solve(self, *, refuse: bool = True) -> None:
        weights: Vector | None = None
        self._directions: Vector = np.eye(self.shape.weights)
        """Where the weights may move, as columns: everywhere, unless the curve must rise."""
        if not self.constrained:
            weights = least_squares(self.shape, self._tally)
            trouble = _trouble(self.shape, weights, self.max_machines)
            if trouble and refuse:
                raise FitRefused(
                    f"The {self.shape.value} fit {trouble} within 1 to {self.max_machines} "
                    "machines: measure more machine counts, or use the other model."
                )
            if trouble:
                weights = None
        if weights is None:
            weights, self._directions = rising_least_squares(
                self.shape, self._tally, self.max_machines
            )
        self._weights = weights
        freedom = max(self._tally.size - self.shape.weights, 1)
        self._residual_variance = self._tally.residual_squares(self.shape, weights) / freedom


def fit(
    samples: Samples, shape: Shape, max_machines: int = 128, *, constrained: bool = False
) -> CapacityCurve:
    """Fit a curve of this shape to the samples by least squares (eq. 2 or 3, residuals of eq. 6).

    Raises `FitRefused` when it turns negative or bends back within 1..max_machines. With
    `constrained` it is the best among the curves that do neither.
    """
    tally = Tally(samples)
    if tally.size <= shape.weights or (not constrained and len(tally.machines) < shape.weights):
        raise AskedWrongly(
            f"{shape.value.capitalize()} has {shape.weights} weights and a variance to learn, but "
            f"got {tally.size} samples at {len(tally.machines)} machine counts: measure at least "
            f"{shape.weights + 1} samples at {shape.weights} machine counts."
        )
    return CapacityCurve(shape, tally, max_machines, constrained=constrained)


def _trouble(shape: Shape, weights: Vector, max_machines: int) -> str:
    """What is wrong with a curve within the range; empty if nothing is."""
    m = np.arange(1, max_machines + 1, dtype=np.float64)
    tau = shape.throughput(weights, m)
    if not np.isfinite(tau).all() or (tau <= 0).any():
        at = int(m[np.argmax(~np.isfinite(tau) | (tau <= 0))])
        return f"turns negative at {at} machines"
    fallen = tau < (1 - BEND_TOLERANCE) * np.maximum.accumulate(tau)
    if fallen.any():
        return f"bends back at {int(m[np.argmax(fallen)])} machines"
    return ""
