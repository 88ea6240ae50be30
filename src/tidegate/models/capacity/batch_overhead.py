"""What a micro-batch takes besides its rows, from measurements on several numbers of cores."""

from collections.abc import Iterable

import numpy as np
from scipy.optimize import nnls


def fit_overhead(measured: Iterable[tuple[int, float]]) -> tuple[float, float]:
    """a0 and a1 of a(k) = a0 + a1 k by least squares over pairs (k, a(k)), neither negative."""
    pairs = np.array(list(measured), dtype=np.float64)
    design = np.stack([np.ones(len(pairs)), pairs[:, 0]], axis=-1)
    fixed_s, per_task_s = nnls(design, pairs[:, 1])[0]
    return float(fixed_s), float(per_task_s)
