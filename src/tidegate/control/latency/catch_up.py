"""How many cores bring a segment that is behind back to its steady state in a stated time."""

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
    """The fewest cores with which batches are down to `steady_s` within `within_s`, else all.

    `imbalance` has one entry for 1, 2, ... cores, as many as there may be. The next batch takes the
    whole backlog, D_1 = a + B c, and each one after it what arrived during the last, D_(n+1) = a +
    lambda c D_n: a geometric way down with ratio rho. All numbers of cores are followed at once.
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
