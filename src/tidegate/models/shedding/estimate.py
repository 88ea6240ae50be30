"""Estimates over all offered rows from the rows kept: counts, sums and means, with errors.

Each row is kept with its own probability pi and then carries the weight 1 / pi (`_weight`). Rows
are kept independently (Bernoulli sampling), so the Horvitz-Thompson estimator, the sum of weight
times value, is unbiased. So is the estimate of its variance from the rows kept, the sum of weight
(weight - 1) value^2. The mean is a ratio of two such sums; its variance is that of the residuals
(linearisation). Rows kept with certainty have weight 1 and add no variance.

With kept rows and their weights as columns (Arrow, pandas or NumPy):

    total = tg.estimated_sum(rows["price"], rows["_weight"])
    print(f"{total.value:,.0f} give or take {total.within(0.95):,.0f}")
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from tidegate.errors import AskedWrongly

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number about all rows that were offered, estimated from those that were kept."""

    value: float
    standard_error: float
    rows: int
    """Kept rows that the estimate is based on."""

    def within(self, confidence: float = 0.95) -> float:
        """Half the width of the confidence interval.

        It uses Student's t, not the normal quantile: the error itself is estimated from the rows.
        """
        if not 0.0 < confidence < 1.0:
            raise AskedWrongly(
                f"a confidence of {confidence:g} is not between 0 and 1; give for example 0.95"
            )
        if self.standard_error == 0.0:
            return 0.0
        if self.rows < 2:
            return float("inf")
        return float(special.stdtrit(self.rows - 1, 0.5 + confidence / 2.0)) * self.standard_error


def estimated_count(weights: npt.ArrayLike) -> Estimate:
    """How many rows were offered: `tg.estimated_count(rows["_weight"])`."""
    w = _weights(weights)
    return estimated_sum(np.ones(len(w)), w)


def estimated_sum(values: npt.ArrayLike, weights: npt.ArrayLike) -> Estimate:
    """The sum over all rows that were offered, shed ones included.

    `tg.estimated_sum(rows["price"], rows["_weight"])`.
    """
    w = _weights(weights)
    y = _values(values, w)
    variance = float((w * (w - 1.0) * y * y).sum())
    return Estimate(value=float(w @ y), standard_error=variance**0.5, rows=len(w))


def estimated_mean(values: npt.ArrayLike, weights: npt.ArrayLike) -> Estimate:
    """The mean over all rows that were offered; at least one of them must have been kept.

    `tg.estimated_mean(rows["price"], rows["_weight"])`.
    """
    w = _weights(weights)
    y = _values(values, w)
    if len(w) == 0:
        raise AskedWrongly("no row was kept, so there is no mean; give at least one row")
    total = w.sum()
    mean = float(w @ y / total)
    variance = float((w * (w - 1.0) * (y - mean) ** 2).sum()) / float(total) ** 2
    return Estimate(value=mean, standard_error=variance**0.5, rows=len(w))


def _weights(weights: npt.ArrayLike) -> Vector:
    w = np.atleast_1d(np.asarray(weights, np.float64))
    if len(w) and not (np.isfinite(w).all() and w.min() >= 1.0 - 1e-9):
        raise AskedWrongly(
            f"a weight is {w.min():g}, but weights are 1 / keep, so at least 1; give the column"
            " '_weight' unchanged"
        )
    return np.maximum(w, 1.0)


def _values(values: npt.ArrayLike, weights: Vector) -> Vector:
    y = np.atleast_1d(np.asarray(values, np.float64))
    if len(y) != len(weights):
        raise AskedWrongly(
            f"there are {len(y)} values but {len(weights)} weights; give one weight per value"
        )
    return y
