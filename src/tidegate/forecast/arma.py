"""ARMA(p, q) by exact maximum likelihood, its order by AIC, and its forecasts (MST eq. 9-13).

This differs from the printed equations in four ways. The process has a mean; eq. 9 has mean zero,
but a load does not. The innovations' variance is the fitted one; eq. 11 is not an error variance.
psi_j = theta_j + sum phi_i psi_(j-i), with the sign that matches eq. 9; eq. 12 has the opposite
one. The variance of a k-step forecast sums psi_0..psi_(k-1); eq. 13 has one term too many.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidegate.errors import AskedWrongly
from tidegate.forecast import Forecast, arma_likelihood
from tidegate.forecast.remembering import Remembered

Vector = NDArray[np.float64]
Order = tuple[int, int]

PASSES = 60
TOLERANCE = 1e-6
"""Stop when a pass raises the log-likelihood by less than n/2 of this (5e-5 for 100 values)."""
FEWEST = 12
"""With fewer values nothing is fitted: the forecast is the last value, as in a random walk."""


@dataclass(frozen=True, slots=True)
class Arma:
    """A fitted ARMA(p, q): eq. 9 with a mean."""

    phi: Vector
    theta: Vector
    mean: float
    variance: float
    """sigma^2 of the innovations."""
    log_likelihood: float
    with_mean: bool = True

    @property
    def order(self) -> Order:
        """(p, q)."""
        return self.phi.size, self.theta.size

    @property
    def aic(self) -> float:
        """Akaike's criterion. It counts the coefficients, the variance, and the mean if fitted."""
        parameters = self.phi.size + self.theta.size + 1 + self.with_mean
        return 2 * parameters - 2 * self.log_likelihood

    def psi(self, count: int) -> Vector:
        """psi_0..psi_(count-1), the weights of past innovations (eq. 12, corrected)."""
        phi, theta = self.phi.tolist(), self.theta.tolist()
        psi = [1.0]
        for j in range(1, count):
            weight = theta[j - 1] if j <= len(theta) else 0.0
            psi.append(weight + sum(phi[i] * psi[j - 1 - i] for i in range(min(j, len(phi)))))
        return np.array(psi)

    def innovations(self, values: Vector) -> tuple[Vector, Vector]:
        """One-step errors of the values, and their variances in units of sigma^2."""
        e, ones, v = (np.empty(values.size) for _ in range(3))
        fine = arma_likelihood.innovations(
            np.ascontiguousarray(values - self.mean), self.phi, self.theta, e, ones, v
        )
        if not fine:
            raise AskedWrongly("The ARMA coefficients are not stationary: fit them with `fit`.")
        return e, v

    def forecast(self, values: ArrayLike, steps: int) -> Forecast:
        """Mean and variance of the `steps` values after these (eq. 10 and 13, corrected)."""
        seen = np.asarray(values, dtype=np.float64)
        e, _ = self.innovations(seen)
        p, q = self.order
        path = np.concatenate([(seen - self.mean)[seen.size - p :], np.zeros(steps)])
        shocks = np.concatenate([e[seen.size - q :], np.zeros(steps)])
        phi, theta = self.phi[::-1], self.theta[::-1]
        for k in range(steps):
            path[p + k] = phi @ path[k : p + k]
            if k < q:
                path[p + k] += theta @ shocks[k : q + k]
        variance = self.variance * np.cumsum(self.psi(steps) ** 2)
        return Forecast(self.mean + path[p:], variance)


def log_likelihood(
    values: ArrayLike, phi: ArrayLike, theta: ArrayLike, mean: float, variance: float
) -> float:
    """Exact Gaussian log-likelihood of the values under these parameters."""
    x = np.asarray(values, dtype=np.float64)
    model = Arma(
        np.asarray(phi, dtype=np.float64), np.asarray(theta, dtype=np.float64), mean, variance, 0.0
    )
    e, v = model.innovations(x)
    return float(-0.5 * (np.log(2 * np.pi * variance * v) + e * e / (variance * v)).sum())


class ArmaFitter:
    """Fits successive windows of one series; each fit starts from the last solution."""

    def __init__(self, max_order: Order = (3, 3), *, with_mean: bool = True) -> None:
        p, q = max_order
        if not (0 <= p <= arma_likelihood.MAX_ORDER and 0 <= q <= arma_likelihood.MAX_ORDER):
            raise AskedWrongly(
                f"The largest ARMA order is {max_order}, but both orders must be from 0 to "
                f"{arma_likelihood.MAX_ORDER}."
            )
        self._max_p, self._max_q = max_order
        self._with_mean = with_mean
        self._solutions: dict[Order, Vector] = {}

    def fits(self, order: Order) -> bool:
        """Whether the order is one of those that it fits."""
        return 0 <= order[0] <= self._max_p and 0 <= order[1] <= self._max_q

    def fit_best(self, values: ArrayLike, *, tolerance: float = TOLERANCE) -> Arma:
        """Fit all orders and return the model with the lowest AIC, except (0, 0), as in IV-C."""
        models = self.fit_all(values, tolerance=tolerance)
        return min((m for m in models if m.order != (0, 0)), key=lambda m: m.aic)

    def fit_all(self, values: ArrayLike, *, tolerance: float = TOLERANCE) -> list[Arma]:
        """Fit all orders, (0, 0) first."""
        x, centre, scale = _standardised(values)
        orders = [(p, q) for p in range(self._max_p + 1) for q in range(self._max_q + 1)]
        for order in orders:
            self._climb(x, order, tolerance)
        return [self._model(x, centre, scale, order) for order in orders]

    def fit(self, values: ArrayLike, order: Order, *, tolerance: float = TOLERANCE) -> Arma:
        """Fit one order. The first time, the smaller orders are fitted before it."""
        p, q = order
        if p > self._max_p or q > self._max_q:
            raise AskedWrongly(
                f"ARMA{order} is larger than this fitter's largest order, "
                f"ARMA{(self._max_p, self._max_q)}: raise its max_order."
            )
        x, centre, scale = _standardised(values)
        if order not in self._solutions:
            for smaller in ((i, j) for i in range(p + 1) for j in range(q + 1)):
                self._climb(x, smaller, tolerance)
        else:
            self._climb(x, order, tolerance, nested=False)
        return self._model(x, centre, scale, order)

    def _climb(self, x: Vector, order: Order, tolerance: float, *, nested: bool = True) -> None:
        """Fit one order from its most likely starting point.

        The candidates are its last solution and those of the next smaller orders with a zero
        appended, so a larger order is never less likely than the ones it contains. When there is no
        last solution, or nothing else, it also climbs from a slow decay under noise (phi near 1,
        theta negative), where the likelihood often has a second maximum.
        """
        p, q = order
        known = self._solutions.get(order)
        starts = [] if known is None else [known]
        if nested and p:
            smaller = self._solutions[p - 1, q]
            starts.append(np.concatenate([smaller[: p - 1], [0.0], smaller[p - 1 :]]))
        if nested and q:
            starts.append(np.append(self._solutions[p, q - 1], 0.0))
        if not starts:
            starts.append(np.zeros(0))
        best = min(starts, key=lambda z: self._squares(x, z, order)) if starts[1:] else starts[0]
        best = best.copy()
        squares = self._climb_from(x, best, order, tolerance)
        if (known is None or not nested) and p and q:
            other = np.zeros(p + q)
            other[0], other[p] = 2.0, 1.0
            if self._climb_from(x, other, order, tolerance) < squares:
                best = other
        self._solutions[order] = best

    def _squares(self, x: Vector, z: Vector, order: Order) -> float:
        scratch = np.empty((4, x.size))
        return float(
            arma_likelihood.residuals(x, z, *order, self._with_mean, scratch[:3], scratch[3])[0]
        )

    def _climb_from(self, x: Vector, z: Vector, order: Order, tolerance: float) -> float:
        return float(arma_likelihood.climb(x, z, *order, self._with_mean, PASSES, tolerance))

    def _model(self, x: Vector, centre: float, scale: float, order: Order) -> Arma:
        p, q = order
        n = x.size
        z = self._solutions[order]
        squares, mean, log_v = arma_likelihood.residuals(
            x, z, p, q, self._with_mean, np.empty((3, n)), np.empty(n)
        )
        phi, theta = np.empty(p), np.empty(q)
        arma_likelihood.coefficients(z[:p], phi)
        arma_likelihood.coefficients(z[p:], theta)
        likelihood = -n / 2 * (np.log(2 * np.pi * squares / n) + 1) - n * np.log(scale)
        variance = squares / n / np.exp(log_v / n) * scale**2
        return Arma(
            phi, -theta, centre + scale * mean, variance, float(likelihood), self._with_mean
        )


def fit(values: ArrayLike, order: Order, *, with_mean: bool = True) -> Arma:
    """Fit the most likely ARMA of this order."""
    return ArmaFitter(order, with_mean=with_mean).fit(values, order, tolerance=1e-9)


def fit_best(values: ArrayLike, max_order: Order = (3, 3), *, with_mean: bool = True) -> Arma:
    """Fit the ARMA with the lowest AIC among all orders up to `max_order` except (0, 0)."""
    return ArmaFitter(max_order, with_mean=with_mean).fit_best(values)


def _standardised(values: ArrayLike) -> tuple[Vector, float, float]:
    """Scale values to mean 0 and deviation 1, so that one tolerance suits all units."""
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or x.size < FEWEST:
        raise AskedWrongly(
            f"An ARMA fit needs at least {FEWEST} values in one dimension, but got {x.size}."
        )
    centre, scale = float(x.mean()), float(x.std())
    if not np.isfinite(scale):
        raise AskedWrongly("An ARMA fit got a value that is not a finite number: remove it.")
    if scale <= 1e-12 * max(abs(centre), 1e-300):
        raise AskedWrongly("An ARMA fit needs values that vary, but all are the same.")
    return np.ascontiguousarray((x - centre) / scale), centre, scale


class ArmaForecaster(Remembered):
    """The paper's forecaster: ARMA on the load in a sliding window of 100 values (IV-C).

    AIC selects the order once the window is full. The paper keeps that order for ever; here it is
    selected again every `reselect_steps` values, unless that is 0. The coefficients are refitted
    for every forecast.
    """

    _LEARNED = ("_values", "_order", "_since_selection")
    _LIKE: ClassVar = {"_order": (0, 0)}

    def __init__(
        self, window: int = 100, max_order: Order = (3, 3), reselect_steps: int = 60
    ) -> None:
        self._values: deque[float] = deque(maxlen=window)
        self._window = window
        self._reselect_steps = reselect_steps
        self._fitter = ArmaFitter(max_order)
        self._order: Order | None = None
        self._since_selection = 0
        self._fitted: Arma | None = None

    @property
    def model(self) -> Arma | None:
        """The model behind the last forecast; None if values were too few or all the same."""
        return self._fitted

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with the window of an earlier run; an order that is not fitted here is left out."""
        super().recall(learned, age_s)
        if self._order is not None and not self._fitter.fits(self._order):
            self._order = None

    def observe(self, value: float, at_s: float) -> None:
        """Add one value to the sliding window."""
        self._values.append(value)
        self._since_selection += 1

    def forecast(self, steps: int) -> Forecast:
        """Fit and forecast. With too few values to fit, forecast a random walk."""
        values = np.array(self._values)
        self._fitted = None
        if values.size < FEWEST or np.ptp(values) <= 1e-9 * abs(values).max():
            return random_walk(values, steps)
        self._fitted = self._fit(values)
        return self._fitted.forecast(values, steps)

    def _fit(self, values: Vector) -> Arma:
        due = self._reselect_steps and self._since_selection >= self._reselect_steps
        if self._order is None or due:
            best = self._fitter.fit_best(values)
            self._since_selection = 0
            if values.size == self._window:
                self._order = best.order
            return best
        p, q = self._order
        return self._fitter.fit(values, (p, q))


def random_walk(values: Vector, steps: int) -> Forecast:
    """Forecast the last value, with the variance of a random walk with the steps seen so far."""
    if values.size == 0:
        raise AskedWrongly("A forecast was asked for before any value was observed.")
    moved = np.diff(values)
    variance = float(np.mean(moved**2)) if moved.size else float(values[-1]) ** 2
    return Forecast(np.full(steps, values[-1]), variance * np.arange(1.0, steps + 1.0))
