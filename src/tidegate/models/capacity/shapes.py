"""The paper's two curves of throughput against machines (MST eq. 2, 3), and samples of them.

Model 1 (eq. 2) is a ratio, tau = 1 / (w0 + w1/m + w2 m + w3 m^2): scaling that saturates.
Model 2 (eq. 3) is a parabola, tau = w0 + w1 m - w2 m^2: scaling that is nearly linear.
"""

from enum import Enum

import numpy as np
from numpy.typing import NDArray

from tidegate.models.capacity.samples import Samples, check_sample

Vector = NDArray[np.float64]


class Shape(Enum):
    """One of the paper's two curves."""

    MODEL_1 = "model 1"
    MODEL_2 = "model 2"

    @property
    def weights(self) -> int:
        """Number of regression coefficients (l of eq. 6)."""
        return 4 if self is Shape.MODEL_1 else 3

    def features(self, m: Vector) -> Vector:
        """The columns that the weights multiply: for 1/tau in model 1, for tau in model 2."""
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

    def slopes(self, weights: Vector, m: Vector) -> Vector:
        """The derivatives of tau(m) by the weights, one column each."""
        features = self.features(m)
        if self is Shape.MODEL_1:
            return np.asarray(-features * (self.throughput(weights, m) ** 2)[..., None])
        return features


MODEL_1 = Shape.MODEL_1
MODEL_2 = Shape.MODEL_2


class Tally:
    """Samples summarised per machine count by n, mean and squared deviations.

    A fit needs no more, so it costs the same after thousands of samples at a few machine counts.
    """

    def __init__(self, samples: Samples) -> None:
        self._per_count: dict[int, tuple[int, float, float]] = {}
        for m, throughput in samples:
            self.add(m, throughput)

    def add(self, m: int, throughput: float) -> None:
        """Add a sample."""
        check_sample(m, throughput)
        n, mean, squares = self._per_count.get(int(m), (0, 0.0, 0.0))
        deviation = throughput - mean
        mean += deviation / (n + 1)
        self._per_count[int(m)] = (n + 1, mean, squares + deviation * (throughput - mean))

    @property
    def size(self) -> int:
        """How many samples there are."""
        return sum(n for n, _, _ in self._per_count.values())

    @property
    def machines(self) -> set[int]:
        """The machine counts that were measured."""
        return set(self._per_count)

    def columns(self) -> tuple[Vector, Vector, Vector, float]:
        """Machine counts, their numbers of samples and means; and the squares within all counts."""
        m = np.array(list(self._per_count), dtype=np.float64)
        folded = np.array(list(self._per_count.values()), dtype=np.float64)
        return m, folded[:, 0], folded[:, 1], float(folded[:, 2].sum())

    def residual_squares(self, shape: Shape, weights: Vector) -> float:
        """Sum over all samples of (tau_i - tau(m_i))^2, the numerator of eq. 6."""
        m, n, mean, within = self.columns()
        return within + float(n @ (mean - shape.throughput(weights, m)) ** 2)

    def relative_squares(self, shape: Shape, weights: Vector) -> float:
        """The same with each residual as a share of the curve."""
        m = np.array(list(self._per_count), dtype=np.float64)
        n, mean, squares = np.array(list(self._per_count.values()), dtype=np.float64).T
        tau = shape.throughput(weights, m)
        return float(((squares + n * (mean - tau) ** 2) / tau**2).sum())
