"""How many cores it takes to drain a segment's backlog within a given time."""

import numpy as np
import numpy.typing as npt

from tidegate.models.microbatch.batch_cost import BatchCost


def cores_to_catch_up(
    cost: BatchCost,
    *,
    rate: float,
    imbalance: npt.NDArray[np.float64],
    backlog_rows: float,
    steady_s: float,
    within_s: float,
) -> int:
    """The fewest cores with which batches shorten to `steady_s` within `within_s`; else all cores.

    `imbalance` has one entry for each number of cores that is allowed: 1, 2, ... The next batch
    takes the whole backlog, D_1 = a + B c. Each later batch takes the rows that arrived during the
    one before it, D_(n+1) = a + lambda c D_n, so durations fall geometrically with ratio rho. All
    numbers of cores are computed at once.
    """
    cores = np.arange(1, len(imbalance) + 1, dtype=np.float64)
    overhead = cost.fixed_s + cost.per_task_s * cores
    per_row = cost.work_s * imbalance / cores
    duration = overhead + backlog_rows * per_row
    spent = np.zeros(len(cores))
    done = np.zeros(len(cores), bool)
    while True:
        going = ~done & (spent + duration <= within_s)
        if not going.any():
            break
        spent = np.where(going, spent + np.maximum(duration, 1e-3), spent)
        duration = np.where(going, overhead + rate * per_row * duration, duration)
        done |= going & (duration <= steady_s)
    found = np.flatnonzero(done)
    return int(cores[found[0]]) if len(found) else int(cores[-1])
