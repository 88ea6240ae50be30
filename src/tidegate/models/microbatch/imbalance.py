"""Imbalance by chance: the fullest task of a batch, though its route is even.

The rows of a task vary by about the root of their number, so delta - 1 falls with the root of the
rows per task. A long batch is balanced better than a short one, and fewer tasks better than many.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from tidegate.models.microbatch.batch_cost import BatchCost


def chance_spread(tasks: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """delta - 1 when rows fall on k tasks at random, times the root of their number.

    The fullest task lies as far above the mean as the largest of k normal draws (Blom's
    approximation of its expectation). N/k rows per task have a deviation of about their root.
    """
    k = np.maximum(np.asarray(tasks, np.float64), 1.0)
    return np.asarray(ndtri((k - 0.375) / (k + 0.25)) * np.sqrt(k - 1.0))


def chance_imbalance(rows: float, tasks: int) -> float:
    """delta when N rows fall on k tasks at random: small batches are never balanced."""
    if rows <= 0.0 or tasks <= 1:
        return 1.0
    return min(1.0 + float(chance_spread(tasks)) / math.sqrt(rows), float(tasks))


def routed_imbalance(shares: npt.ArrayLike, rows: float) -> float:
    """delta when N rows fall on tasks that get these shares of them.

    The rows of a task are normally distributed around its share, so the fullest task has
    E[max] = low + the integral of 1 - Phi_1 ... Phi_k rows, with Phi_j the distribution of task j.
    """
    parts = np.asarray(shares, np.float64)
    tasks = len(parts)
    if rows <= 0.0 or tasks <= 1:
        return 1.0
    mean = rows * parts
    deviation = np.sqrt(np.maximum(mean * (1.0 - parts), 1e-12))
    low, high = float(mean.max()), float((mean + 6.0 * deviation).max())
    at, step = np.linspace(low, high, 256, retstep=True)
    below = ndtr((at[:, None] - mean) / deviation).prod(axis=1)
    # The maximum is rarely below the largest mean; what it falls short of there is added below.
    under = np.linspace(float((mean - 6.0 * deviation).max()), low, 256)
    short = float(ndtr((under[:, None] - mean) / deviation).prod(axis=1).mean())
    fullest = low - short * (low - float(under[0])) + float((1.0 - below).sum()) * float(step)
    return min(max(fullest / (rows / tasks), 1.0), float(tasks))


def steady_rows(
    cost: BatchCost,
    rate: float,
    tasks: int,
    lasting: float,
    chance: float,
    interval_s: float = 0.0,
) -> float | None:
    """Rows per task of a batch in the steady state; None if the tasks cannot keep up.

    `lasting` is the part of delta that does not depend on the size of a batch, and `chance` is c in
    delta = lasting + c / sqrt(n). A batch then takes D = a + w (lasting n + c sqrt(n)) seconds,
    and n = lambda D / k. That is a quadratic equation for the root of D.
    """
    rho = rate * cost.work_s * lasting / tasks
    if rho >= 1.0:
        return None
    spread = chance * cost.work_s * math.sqrt(rate / tasks)
    root = spread + math.sqrt(spread**2 + 4.0 * (1.0 - rho) * cost.overhead_s(tasks))
    duration_s = max((root / (2.0 * (1.0 - rho))) ** 2, cost.overhead_s(tasks) + cost.least_s)
    return rate * max(duration_s, interval_s) / tasks
