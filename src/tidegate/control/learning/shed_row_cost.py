"""The cost of a shed row (c_s of the overload paper): it is read and counted before it is shed."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from tidegate.control.measurement import BatchMeasurement, SegmentMeasurement

_FADING = 0.98
"""Factor by which the weight of a batch shrinks with every newer one."""
_LIKELY = 0.05
"""Prior: c_s is about this share of a row's work at most, as reading is much less than working."""
_HALF_FORGOTTEN_S = 7 * 86_400.0
"""What an earlier run learned counts half after so long."""
_NOISE = 0.1
"""Spread of a batch's duration, as a share of it. The prior is weighed against this noise."""


class ShedRowCost:
    """Learns c_s, in core seconds, by least squares over D = a + (n c_p + shed c_s) / k.

    a, c_p and c_s are fitted together, and c_s is drawn towards zero where the batches cannot tell
    them apart. Fitting only the excess over another model's expectation would chase that model,
    because both learn from the same batches.
    """

    def __init__(self) -> None:
        self._moments = np.zeros((3, 3))
        self._product = np.zeros(3)
        self.row_s = 0.0

    def learn(self, batch: BatchMeasurement) -> None:
        """Learn from one batch, unless it is an outlier."""
        if batch.outlier is not None or batch.rows <= 0 or batch.duration_s <= 0.0:
            return
        kept = batch.rows * max(batch.imbalance, 1.0) / batch.tasks
        x = np.array([1.0, kept, batch.shed_rows / batch.tasks]) / batch.duration_s
        self._moments = _FADING * self._moments + np.outer(x, x)
        self._product = _FADING * self._product + x
        if batch.shed_rows == 0:
            return
        row_s = batch.duration_s * batch.tasks / batch.rows
        moments = self._moments.copy()
        moments[2, 2] += (_NOISE / (_LIKELY * row_s)) ** 2
        scale = np.sqrt(np.maximum(np.diag(moments), 1e-300))
        among = moments / np.outer(scale, scale) + 1e-9 * np.eye(3)
        solved = np.linalg.solve(among, self._product / scale) / scale
        self.row_s = float(min(max(solved[2], 0.0), row_s))

    def learned(self) -> dict[str, Any]:
        """The sums of the fit, and its result."""
        return {
            "moments": self._moments.tolist(),
            "product": self._product.tolist(),
            "row_s": self.row_s,
        }

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        """Begin with the sums of an earlier run, with less weight the older they are."""
        if not learned:
            return
        weight = 0.5 ** (max(age_s, 0.0) / _HALF_FORGOTTEN_S)
        self._moments = weight * np.array(learned["moments"], dtype=np.float64)
        self._product = weight * np.array(learned["product"], dtype=np.float64)
        self.row_s = float(learned["row_s"])

    def without(self, segment: SegmentMeasurement) -> SegmentMeasurement:
        """The segment without the time that shed rows took, to fit the cost of kept rows to.

        At least a tenth of each duration is left, in case the estimate is still far too high.
        """
        if self.row_s == 0.0:
            return segment
        batches = tuple(
            dataclasses.replace(
                batch,
                duration_s=max(
                    batch.duration_s - self.row_s * batch.shed_rows / batch.tasks,
                    0.1 * batch.duration_s,
                ),
            )
            for batch in segment.batches
        )
        return dataclasses.replace(segment, batches=batches)
