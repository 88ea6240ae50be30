"""The paper's two curves of throughput against machines, fitted and chosen (MST III-A, III-B).

Model 1 (eq. 2) is a ratio, tau = 1 / (w0 + w1/m + w2 m + w3 m^2): scaling that saturates.
Model 2 (eq. 3) is a parabola, tau = w0 + w1 m - w2 m^2: scaling that is nearly linear.
Both can turn negative or bend back between or beyond the samples; such a fit is refused, since a
scheduler that asks it for machines would be sent to a pole or to the far side of the hill.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls
from scipy.special import ndtri

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.models.capacity.machines import Samples

Vector = NDArray[np.float64]

BEND_TOLERANCE = 0.02
"""A curve may fall this share below its highest earlier point before it counts as bent back: noise
tilts the fit of an application that does not scale (the paper's VHT) by about as much."""

NEWTON_STEPS = 30


class FitRefused(TidegateError):
    """The least-squares curve turns negative or bends back inside the range."""


class Shape(Enum):
    """Which of the paper's two curves."""

    MODEL_1 = "model 1"
    MODEL_2 = "model 2"

    @property
    def weights(self) -> int:
        """Number of regression coefficients (l of eq. 6)."""
        return 4 if self is Shape.MODEL_1 else 3

    def features(self, m: Vector) -> Vector:
        """Columns that the weights multiply: of 1/tau for model 1, of tau for model 2."""
        if self is Shape.MODEL_1:
            return np.stack([np.ones_like(m), 1.0 / m, m, m * m], axis=-1)
        return np.stack([np.ones_like(m), m, -m * m], axis=-1)

    def throughput(self, weights: Vector, m: Vector) -> Vector:
        """tau(m), eq. 2 or eq. 3."""
        linear = self.features(m) @ weights
        if self is Shape.MODEL_1:
            with np.errstate(divide="ignore"):
                return np.asarray(1.0 / linear)
        return np.asarray(linear)


MODEL_1 = Shape.MODEL_1
MODEL_2 = Shape.MODEL_2


class _Tally:
    """Samples folded per machine count: n, mean and squared deviations are all a fit needs.

    Online learning adds thousands of samples at a few machine counts; a refit costs the same.
    """

    def __init__(self, samples: Samples) -> None:
        self._per_count: dict[int, tuple[int, float, float]] = {}
        for m, throughput in samples:
            self.add(m, throughput)

    def add(self, m: int, throughput: float) -> None:
        if m < 1 or int(m) != m:
            raise AskedWrongly(
                f"A capacity sample is of {m} machines, but needs a count from 1 up."
            )
        if not (np.isfinite(throughput) and throughput > 0):
            raise AskedWrongly(
                f"The capacity sample at {m} machines is {throughput}, but a throughput is a "
                "positive number: measure a saturated interval."
            )
        n, mean, squares = self._per_count.get(int(m), (0, 0.0, 0.0))
        deviation = throughput - mean
        mean += deviation / (n + 1)
        self._per_count[int(m)] = (n + 1, mean, squares + deviation * (throughput - mean))

    @property
    def size(self) -> int:
        return sum(n for n, _, _ in self._per_count.values())

    @property
    def machines(self) -> set[int]:
        return set(self._per_count)

    def columns(self) -> tuple[Vector, Vector, Vector, float]:
        """Machines, how many samples, their mean; and the squares within a machine count."""
        m = np.array(list(self._per_count), dtype=np.float64)
        folded = np.array(list(self._per_count.values()), dtype=np.float64)
        return m, folded[:, 0], folded[:, 1], float(folded[:, 2].sum())

    def residual_squares(self, shape: Shape, weights: Vector) -> float:
        """Sum over all samples of (tau_i - tau(m_i))^2, the numerator of eq. 6."""
        m, n, mean, within = self.columns()
        return within + float(n @ (mean - shape.throughput(weights, m)) ** 2)


class CapacityCurve:
    """One of the two curves with its weights and residual variance; learns online (III-B)."""

    def __init__(
        self, shape: Shape, tally: _Tally, max_machines: int, *, constrained: bool = False
    ) -> None:
        """Use `fit`. `constrained` keeps the curve rising; otherwise a bad fit is refused."""
        self.shape = shape
        self.max_machines = max_machines
        self.constrained = constrained
        self._tally = tally
        self._stale = False
        self._solve()

    @property
    def weights(self) -> Vector:
        """w0.. as eq. 2 or eq. 3 writes them."""
        self._refresh()
        return self._weights.copy()

    @property
    def residual_variance(self) -> float:
        """sigma_tau^2 of eq. 6: squared residuals over samples less weights."""
        self._refresh()
        return self._residual_variance

    @property
    def samples(self) -> int:
        """How many samples the curve rests on."""
        return self._tally.size

    def mean(self, m: ArrayLike) -> Vector:
        """tau(m), eq. 2 or eq. 3."""
        self._refresh()
        return self.shape.throughput(self._weights, np.asarray(m, dtype=np.float64))

    def variance(self, m: ArrayLike) -> Vector:
        """Eq. 7's variance: the same at every m."""
        return np.full(np.shape(m), self.residual_variance)

    def quantile(self, m: ArrayLike, probability: float) -> Vector:
        """Quantile of eq. 7's normal distribution."""
        return self.mean(m) + float(ndtri(probability)) * np.sqrt(self.variance(m))

    def observe(self, m: int, throughput: float) -> None:
        """Add a saturated interval; the weights follow when next asked for.

        Should the longer sample bend the curve, it is refitted within the rising curves: a running
        scheduler must have an answer, so refusal is for the first fit only.
        """
        self._tally.add(m, throughput)
        self._stale = True

    def _refresh(self) -> None:
        if self._stale:
            self._stale = False
            self._solve(refuse=False)

    def _solve(self, *, refuse: bool = True) -> None:
        weights: Vector | None = None
        if not self.constrained:
            weights = _least_squares(self.shape, self._tally)
            trouble = _trouble(self.shape, weights, self.max_machines)
            if trouble and refuse:
                raise FitRefused(
                    f"The {self.shape.value} fit {trouble} within 1 to {self.max_machines} "
                    "machines: measure more machine counts, or use the other model."
                )
            if trouble:
                weights = None
        if weights is None:
            weights = _rising_least_squares(self.shape, self._tally, self.max_machines)
        self._weights = weights
        freedom = max(self._tally.size - self.shape.weights, 1)
        self._residual_variance = self._tally.residual_squares(self.shape, weights) / freedom


def fit(
    samples: Samples, shape: Shape, max_machines: int = 128, *, constrained: bool = False
) -> CapacityCurve:
    """Least-squares curve of this shape through the samples (eq. 2 or 3), residuals as in eq. 6.

    Raises `FitRefused` when it turns negative or bends back within 1..max_machines, unless
    `constrained`: then it is the best among the curves that do neither.
    """
    tally = _Tally(samples)
    if tally.size <= shape.weights or (not constrained and len(tally.machines) < shape.weights):
        raise AskedWrongly(
            f"{shape.value.capitalize()} has {shape.weights} weights and a variance to learn, but "
            f"got {tally.size} samples at {len(tally.machines)} machine counts: measure at least "
            f"{shape.weights + 1} samples at {shape.weights} machine counts."
        )
    return CapacityCurve(shape, tally, max_machines, constrained=constrained)


def disagreements(
    first: CapacityCurve,
    second: CapacityCurve,
    *,
    threshold: float = 0.1,
    count: int = 3,
) -> list[int]:
    """Machine counts worth a validation sample: where the two curves differ most (III-A2).

    Not among the training counts, further apart than `threshold` (relative to their mean), the
    largest disagreement first, and not two neighbours of the same hill: each next one is at least
    a tenth of the range away from those before.
    """
    limit = min(first.max_machines, second.max_machines)
    m = np.arange(1, limit + 1)
    one, other = first.mean(m), second.mean(m)
    apart = np.abs(one - other) / np.maximum((np.abs(one) + np.abs(other)) / 2, 1e-300)
    apart[np.isin(m, list(first._tally.machines | second._tally.machines))] = 0.0
    picked: list[int] = []
    for index in np.argsort(-apart, kind="stable"):
        if apart[index] <= threshold or len(picked) == count:
            break
        if all(abs(int(m[index]) - other_m) >= limit / 10 for other_m in picked):
            picked.append(int(m[index]))
    return picked


@dataclass(frozen=True, slots=True)
class Choice:
    """Which curve was chosen, and why."""

    model: CapacityCurve
    reason: str
    errors: dict[str, float]
    """Root mean squared error of each curve on the points it was chosen by."""


def choose(samples: Samples, validation: Samples | None = None, max_machines: int = 128) -> Choice:
    """The curve that fits better (III-A2), then fitted to all samples.

    Judged on the validation samples, taken where the curves disagree (`disagreements` says where);
    without any, on the training error. A curve whose fit is refused is out; when both are, both are
    fitted again among the rising curves.
    """
    training = list(samples)
    checks = list(validation or [])
    curves: dict[Shape, CapacityCurve] = {}
    refused: list[str] = []
    for shape in Shape:
        try:
            curves[shape] = fit(training, shape, max_machines)
        except FitRefused:
            refused.append(shape.value)
    reason = f"{' and '.join(refused)} refused" if refused else ""
    if not curves:
        reason = "both refused, refitted among rising curves"
        curves = {s: fit(training, s, max_machines, constrained=True) for s in Shape}
    judged_on = checks or training
    m = np.array([pair[0] for pair in judged_on], dtype=np.float64)
    measured = np.array([pair[1] for pair in judged_on])
    errors = {
        shape.value: float(np.sqrt(np.mean((curve.mean(m) - measured) ** 2)))
        for shape, curve in curves.items()
    }
    shape = min(curves, key=lambda s: errors[s.value])
    if len(curves) == 2:
        judged = "validation" if checks else "training"
        reason = f"{reason}; smaller {judged} error".removeprefix("; ")
    chosen = curves[shape]
    for pair in checks:
        chosen.observe(*pair)
    return Choice(chosen, f"{shape.value}: {reason}", errors)


def _least_squares(shape: Shape, tally: _Tally) -> Vector:
    """Weights that minimise the squared residuals of tau.

    Model 2 is linear. Model 1 is linear in 1/tau, where a squared residual weighs 1/tau^4 of what
    it does in tau: weighted so it starts Gauss-Newton steps in tau itself, the scale of eq. 5.
    """
    m, n, mean, _ = tally.columns()
    features = shape.features(m)
    scale = np.abs(features).max(axis=0)
    features = features / scale
    if shape is Shape.MODEL_2:
        root = np.sqrt(n)
        return np.asarray(_solve_least_squares(features * root[:, None], mean * root) / scale)
    weight = mean * mean * np.sqrt(n)
    weights = _solve_least_squares(features * weight[:, None], weight / mean)
    error = _ratio_error(features, weights, mean, n)
    for _ in range(NEWTON_STEPS):
        linear = features @ weights
        tau = 1.0 / linear
        jacobian = -features * (tau * tau * np.sqrt(n))[:, None]
        step = _solve_least_squares(jacobian, (mean - tau) * np.sqrt(n))
        length = 1.0
        while length > 1e-3:
            trial = weights + length * step
            trial_error = _ratio_error(features, trial, mean, n)
            if trial_error <= error:
                break
            length /= 2
        else:
            break
        gained = error - trial_error
        weights, error = trial, trial_error
        if gained <= 1e-12 * error:
            break
    return np.asarray(weights / scale)


def _ratio_error(features: Vector, weights: Vector, mean: Vector, n: Vector) -> float:
    """Squared residuals in tau of model 1; infinite past the pole."""
    linear = features @ weights
    if (linear <= 0).any():
        return float("inf")
    return float(n @ (1.0 / linear - mean) ** 2)


def _solve_least_squares(design: Vector, target: Vector) -> Vector:
    return np.asarray(np.linalg.lstsq(design, target, rcond=None)[0], dtype=np.float64)


def _rising_least_squares(shape: Shape, tally: _Tally, max_machines: int) -> Vector:
    """Best weights among curves that stay positive and do not bend back up to max_machines.

    Such curves are a cone, and the cone has few edges, so non-negative least squares over the edges
    finds the best one. With M the range: model 2 rises on [0, M] when it is a + b m +
    c (2 M m - m^2) with a, b, c >= 0. Model 1 with non-negative weights rises on [1, M] when
    w1 / M^2 >= w2 + 2 w3 M, whose edges are 1, 1/m, 1/m + m / M^2 and 1/m + m^2 / (2 M^3).
    """
    m, n, mean, _ = tally.columns()
    top = float(max(max_machines, m.max()))
    root = np.sqrt(n)
    one = np.ones_like(m)
    if shape is Shape.MODEL_2:
        edges = np.stack([one, m, 2 * top * m - m * m], axis=-1)
        a, b, c = _non_negative(edges * root[:, None], mean * root)
        return np.array([a, b + 2 * top * c, c])
    edges = np.stack([one, 1 / m, 1 / m + m / top**2, 1 / m + m * m / (2 * top**3)], axis=-1)
    weight = mean * mean * root
    a, b, c, d = _non_negative(edges * weight[:, None], weight / mean)
    return np.array([a, b + c + d, c / top**2, d / (2 * top**3)])


def _non_negative(design: Vector, target: Vector) -> Vector:
    scale = np.linalg.norm(design, axis=0)
    return np.asarray(nnls(design / scale, target)[0] / scale, dtype=np.float64)


def _trouble(shape: Shape, weights: Vector, max_machines: int) -> str:
    """What is wrong with a curve inside the range; empty when nothing is."""
    m = np.arange(1, max_machines + 1, dtype=np.float64)
    tau = shape.throughput(weights, m)
    if not np.isfinite(tau).all() or (tau <= 0).any():
        at = int(m[np.argmax(~np.isfinite(tau) | (tau <= 0))])
        return f"turns negative at {at} machines"
    fallen = tau < (1 - BEND_TOLERANCE) * np.maximum.accumulate(tau)
    if fallen.any():
        return f"bends back at {int(m[np.argmax(fallen)])} machines"
    return ""
