"""How many cores it takes to drain a segment's backlog within a given time, and how long it takes.

Without a read limit the next batch takes the whole backlog, D_1 = a + B c. Each later batch takes
the rows that arrived during the one before it, D_(n+1) = a + lambda c D_n, so durations fall
geometrically with ratio rho. With a limit of L rows, batches take L rows each until no more than L
are left: each drains L - lambda (a + L c) of them, or none if that is not above zero.
"""

import math

import numpy as np
import numpy.typing as npt

from tidegate.models.microbatch.batch_cost import BatchCost

_AS_GOOD = 1.05
"""Where no number of cores is enough, the fewest that drain the backlog about as fast as any do."""
_MOST_BATCHES = 10_000


def cores_to_catch_up(
    cost: BatchCost,
    *,
    rate: float,
    imbalance: npt.NDArray[np.float64],
    backlog_rows: float,
    steady_s: float,
    within_s: float,
    limit_rows: float | None = None,
) -> int:
    """The fewest cores with which batches shorten to `steady_s` within `within_s`; else all cores.

    `imbalance` has one entry for each number of cores that is allowed: 1, 2, ... All of them are
    computed at once. Behind a read limit, all cores are not better than a few if the fixed cost of
    a batch is what lasts: then it is the fewest that are about as fast.
    """
    cores = np.arange(1, len(imbalance) + 1, dtype=np.float64)
    overhead = cost.fixed_s + cost.per_task_s * cores + cost.rowless_s / cores
    per_row = cost.work_s * imbalance / cores
    spent = np.zeros(len(cores))
    if limit_rows is not None and backlog_rows > limit_rows:
        spent = _limited_s(overhead, per_row, rate, backlog_rows - limit_rows, limit_rows)
        backlog_rows = limit_rows
    limited_s = spent
    duration = overhead + backlog_rows * per_row
    done = np.zeros(len(cores), bool)
    while True:
        going = ~done & (spent + duration <= within_s)
        if not going.any():
            break
        spent = np.where(going, spent + np.maximum(duration, 1e-3), spent)
        duration = np.where(going, overhead + rate * per_row * duration, duration)
        done |= going & (duration <= steady_s)
    found = np.flatnonzero(done)
    if len(found):
        return int(cores[found[0]])
    if limit_rows is None or not limited_s.any():
        return int(cores[-1])
    taking = 1.0 / (overhead + limit_rows * per_row)
    if np.isfinite(limited_s).any():
        taking = 1.0 / limited_s
    return int(cores[np.flatnonzero(taking * _AS_GOOD >= taking.max())[0]])


def time_to_catch_up_s(
    cost: BatchCost,
    cores: int,
    *,
    rate: float,
    imbalance: float,
    backlog_rows: float,
    steady_s: float,
    limit_rows: float | None = None,
) -> float:
    """The time until batches on so many cores are as short as `steady_s`; infinite if never."""
    overhead, per_row = cost.overhead_s(cores), cost.row_s(cores, imbalance)
    spent_s = 0.0
    if limit_rows is not None and backlog_rows > limit_rows:
        left = backlog_rows - limit_rows
        spent_s = float(
            _limited_s(np.array([overhead]), np.array([per_row]), rate, left, limit_rows)[0]
        )
        backlog_rows = limit_rows
    duration_s = overhead + backlog_rows * per_row
    for _ in range(_MOST_BATCHES):
        if not math.isfinite(spent_s):
            break
        spent_s += duration_s
        next_s = overhead + rate * per_row * duration_s
        if next_s <= steady_s:
            return spent_s
        if next_s >= duration_s:
            break
        duration_s = next_s
    return math.inf


def _limited_s(
    overhead: npt.NDArray[np.float64],
    per_row: npt.NDArray[np.float64],
    rate: float,
    rows: float,
    limit_rows: float,
) -> npt.NDArray[np.float64]:
    """The time in which batches of `limit_rows` drain so many rows; infinite where they do not."""
    duration = overhead + limit_rows * per_row
    drained = limit_rows - rate * duration
    batches = np.where(drained > 0.0, rows / np.maximum(drained, 1e-9), np.inf)
    return np.asarray(batches * duration)
