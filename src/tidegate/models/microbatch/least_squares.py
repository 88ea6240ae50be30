"""Least-squares fits of the cost of a micro-batch, with priors and without negative costs.

A batch's noise is proportional to its duration, so errors are relative. A pipeline often runs with
one number of tasks and one load for long; a weak prior then decides what batches cannot.
"""

import math
from typing import Any

import numba as nb
import numpy as np

NOISE = 0.08
"""A batch's deviation from the model, relative to its duration: it sets the prior's strength."""
_TOLD_SPREAD, _TOLD_LEAST_S = 0.5, 1e-3
"""Prior relative error, and its least value, of what is told per task."""
_SAVED, _SAVED_SPREAD = 0.05, 0.03
"""Prior of the share of the tasks' time that a batch saves elsewhere, and its deviation."""
_STEPS = 24
"""Values that are tried for the least time that a batch takes besides its fixed cost."""
_DOUBT = 0.3
"""How much smaller the squared errors have to be, in variances, for it to be more than none."""


@nb.njit(cache=True)
def fit_parts(cells: Any) -> tuple[float, float, float, float, float, float]:
    """b0, w, a0, a1, L and g: the line of the users' functions, and the rest of the duration.

    What tasks do outside the users' functions belongs to the rest: tasks that read and write at the
    same time are in each other's way, so it grows with their number, not with their rows.
    """
    tasks, rows, imbalance, duration = cells[:, 0], cells[:, 1], cells[:, 2], cells[:, 3]
    function, starting, weight = cells[:, 4] - cells[:, 5], cells[:, 6], cells[:, 7]
    start_s = (weight * starting / tasks).sum() / weight.sum()
    busy = function / imbalance
    task_s, row_s = fit_line(rows / tasks, busy, weight, busy, 0, 0.0)
    fixed_s, per_task_s, least_s, saved = _rest(tasks, duration, function, weight, start_s)
    return task_s, row_s, fixed_s, per_task_s, least_s, saved


@nb.njit(cache=True)
def _rest(tasks: Any, duration: Any, function: Any, weight: Any, start_s: float) -> Any:
    """a0, a1, L and g of D = a0 + a1 k + max((1 - g) S, L), with S the time in the functions.

    L is the best of several values; it is 0 unless another one explains more. What is tried is the
    time in the functions, L / (1 - g), below which a batch does not get shorter. So g counts on
    both sides of it, as in D.
    """
    precise = weight / np.maximum(NOISE * duration, _TOLD_LEAST_S) ** 2
    strength = np.array([0.0, (_TOLD_SPREAD * start_s + _TOLD_LEAST_S) ** -2, _SAVED_SPREAD**-2])
    usual = np.array([0.0, start_s, _SAVED])
    best = np.inf
    found = (0.0, 0.0, 0.0, 0.0)
    shortest, longest = function.min(), function.max()
    for step in range(_STEPS + 1):
        tried_s = 0.0 if step == 0 else shortest + (longest - shortest) * step / _STEPS
        longer = np.maximum(function, tried_s)
        rest = duration - longer
        moments = np.diag(strength)
        product = strength * usual
        for row in range(len(tasks)):
            x = np.array([1.0, tasks[row], -longer[row]])
            moments += precise[row] * np.outer(x, x)
            product += precise[row] * rest[row] * x
        begin, rise, saved = _not_negative(moments, product)
        error = (precise * (rest - begin - rise * tasks + saved * longer) ** 2).sum()
        error += (strength * (np.array([begin, rise, saved]) - usual) ** 2)[1:].sum()
        error += 0.0 if step == 0 else _DOUBT
        if error < best:
            best = error
            found = (begin, rise, (1.0 - saved) * tried_s, saved)
    return found


@nb.njit(cache=True)
def fit_line(
    x: Any, y: Any, weight: Any, scale: Any, place: int, told: float
) -> tuple[float, float]:
    """The line through (x, y), neither part negative; `told` is the prior of its begin or rise.

    `place` is 0 for the begin and 1 for the rise. The noise of y is a share of `scale`.
    """
    precise = weight / np.maximum(NOISE * scale, _TOLD_LEAST_S) ** 2
    m00, m01, m11 = precise.sum(), (precise * x).sum(), (precise * x * x).sum()
    p0, p1 = (precise * y).sum(), (precise * x * y).sum()
    strength = (_TOLD_SPREAD * told + _TOLD_LEAST_S) ** -2
    if place == 0:
        m00, p0 = m00 + strength, p0 + strength * told
    else:
        m11, p1 = m11 + strength, p1 + strength * told
    spread = m00 * m11 - m01 * m01
    if spread > 1e-12 * m00 * m11:
        begin, rise = (p0 * m11 - p1 * m01) / spread, (p1 * m00 - p0 * m01) / spread
    else:
        begin, rise = 0.0, p1 / m11
    if rise < 0.0:
        begin, rise = p0 / m00, 0.0
    elif begin < 0.0:
        begin, rise = 0.0, p1 / m11
    return max(begin, 0.0), max(rise, 0.0)


@nb.njit(cache=True)
def fit_whole(
    cells: Any, at_s: float, memory_s: float, guess: Any, strength: Any
) -> tuple[float, float, float]:
    """Ridge regression towards the guess, restricted to costs that are not negative."""
    moments = np.diag(strength)
    product = strength * guess
    for row in range(len(cells)):
        tasks, weighted_rows, duration_s, batches, seen_s = cells[row]
        weight = batches * math.exp(-max(at_s - seen_s, 0.0) / memory_s)
        weight /= max(duration_s, 1e-3) ** 2
        x = np.array([1.0, tasks, weighted_rows / tasks])
        moments += weight * np.outer(x, x)
        product += weight * duration_s * x
    return _not_negative(moments, product)


@nb.njit(cache=True)
def _not_negative(moments: Any, product: Any) -> tuple[float, float, float]:
    """The least squares solution with three terms that are not negative, by trying all subsets.

    The moments are scaled by their diagonal, because seconds per row and per task differ by orders
    of magnitude.
    """
    scale = np.sqrt(np.diag(moments))
    best = np.zeros(3)
    least = np.inf
    for free in range(1, 8):
        chosen = np.array([index for index in range(3) if free >> index & 1])
        size = len(chosen)
        small = np.empty((size, size))
        right = np.empty(size)
        for i in range(size):
            right[i] = product[chosen[i]] / scale[chosen[i]]
            for j in range(size):
                one, other = chosen[i], chosen[j]
                small[i, j] = moments[one, other] / (scale[one] * scale[other])
            small[i, i] += 1e-12
        solved = np.linalg.solve(small, right)
        costs = np.zeros(3)
        for i in range(size):
            costs[chosen[i]] = solved[i] / scale[chosen[i]]
        # The error without its constant part, which is the same for all.
        error = costs @ moments @ costs - 2.0 * (costs @ product)
        if costs.min() >= 0.0 and error < least:
            least = error
            best = costs
    return best[0], best[1], best[2]
