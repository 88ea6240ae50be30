"""The weights of a capacity curve that fit its samples best, among all curves or rising ones."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from tidegate.models.capacity.shapes import Shape, Tally

Vector = NDArray[np.float64]

NEWTON_STEPS = 30


def least_squares(shape: Shape, tally: Tally) -> Vector:
    """Weights that minimise the squared residuals of tau.

    Model 2 is linear. Model 1 is linear in 1/tau, where a squared residual has 1/tau^4 of its
    weight in tau. The solution weighted accordingly is the start for Gauss-Newton steps in tau
    itself, the scale of eq. 5.
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
    """Squared residuals of model 1 in tau; infinite beyond the pole."""
    linear = features @ weights
    if (linear <= 0).any():
        return float("inf")
    return float(n @ (1.0 / linear - mean) ** 2)


def _solve_least_squares(design: Vector, target: Vector) -> Vector:
    return np.asarray(np.linalg.lstsq(design, target, rcond=None)[0], dtype=np.float64)


def rising_least_squares(shape: Shape, tally: Tally, max_machines: int) -> tuple[Vector, Vector]:
    """The best weights among curves that stay positive and do not fall up to max_machines.

    Such curves form a cone with few edges (`rising_edges`), so non-negative least squares over the
    edges finds the best one. Also returns, as columns, the edges that it is a sum of: as long as it
    rises, the weights can move along these only.
    """
    m, n, mean, _ = tally.columns()
    edges = rising_edges(shape, float(max(max_machines, m.max())))
    weight, target = (np.sqrt(n), mean * np.sqrt(n))
    if shape is Shape.MODEL_1:  # linear in 1/tau, see `least_squares`
        weight, target = mean * mean * np.sqrt(n), mean * np.sqrt(n)
    parts = _non_negative((shape.features(m) @ edges) * weight[:, None], target)
    return np.asarray(edges @ parts), np.asarray(edges[:, parts > 0.0])


def rising_edges(shape: Shape, top: float) -> Vector:
    """The edges of the cone of rising curves, as columns of weights.

    With range M, model 2 rises on [0, M] if it is a + b m + c (2 M m - m^2) with a, b, c >= 0.
    Model 1 with non-negative weights rises on [1, M] if w1 / M^2 >= w2 + 2 w3 M; the edges are 1,
    1/m, 1/m + m / M^2 and 1/m + m^2 / (2 M^3).
    """
    if shape is Shape.MODEL_2:
        return np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 2 * top], [0.0, 0.0, 1.0]])
    return np.array(
        [
            [1.0, 0.0, 0.0, 0.0],
            [0.0, 1.0, 1.0, 1.0],
            [0.0, 0.0, top**-2, 0.0],
            [0.0, 0.0, 0.0, top**-3 / 2],
        ]
    )


def _non_negative(design: Vector, target: Vector) -> Vector:
    scale = np.linalg.norm(design, axis=0)
    return np.asarray(nnls(design / scale, target)[0] / scale, dtype=np.float64)
