"""A measured pipeline as an application of a backtest: its own capacity in place of a modelled one.

The capacity between two measured numbers of cores is interpolated, as the paper does for its ground
truth (V-A3). It ends with the largest number that was measured.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.models.capacity.measured import MeasuredCapacity

Vector = NDArray[np.float64]

SLACK = 1.04
"""The largest number of cores sustains so many times the peak, as for the modelled applications."""
LEAST_NOISE = 0.01
"""The least relative noise to assume: the same interval never comes twice."""


@dataclass(frozen=True, slots=True)
class MeasuredApplication:
    """What was measured of one pipeline, in rows per second."""

    measured: MeasuredCapacity
    rows_per_unit: float = 1.0

    def __post_init__(self) -> None:
        self.measured.refuse_overhead(np.inf)

    @property
    def name(self) -> str:
        """The pipeline's name."""
        return self.measured.pipeline or "measured"

    @property
    def peak(self) -> float:
        """The largest load: a little less than the largest number of cores sustains."""
        return float(self.mean()[-1]) / SLACK

    @property
    def fixed_s(self) -> float:
        """What a micro-batch takes besides its rows."""
        return self.measured.fixed_s

    @property
    def per_task_s(self) -> float:
        """What each of its tasks adds to that."""
        return self.measured.per_task_s

    @property
    def noise(self) -> float:
        """The relative deviation of samples at the same number of cores, over all of them."""
        squares, freedom = 0.0, 0
        for rates in self._by_cores().values():
            squares += float(((np.array(rates) / np.mean(rates) - 1.0) ** 2).sum())
            freedom += len(rates) - 1
        return max(float(np.sqrt(squares / freedom)) if freedom else 0.0, LEAST_NOISE)

    def mean(self) -> Vector:
        """Rows per second on 1, 2, ... cores, for ever: the limit of ever larger batches."""
        known = {0: 0.0} | {m: float(np.mean(rates)) for m, rates in self._by_cores().items()}
        counts = sorted(known)
        between = np.interp(np.arange(1, counts[-1] + 1), counts, [known[m] for m in counts])
        return np.asarray(np.maximum.accumulate(between))

    def samples(self, rng: np.random.Generator) -> list[tuple[int, float]]:
        """The samples, as they were measured."""
        return [(m, rate) for m, rates in self._by_cores().items() for rate in rates]

    def measure(self, machines: list[int], rng: np.random.Generator) -> list[tuple[int, float]]:
        """Samples as another calibration might find them at these numbers of cores."""
        mean, noise = self.mean(), self.noise
        return [(m, float(mean[m - 1] * (1 + noise * rng.standard_normal()))) for m in machines]

    def _by_cores(self) -> dict[int, list[float]]:
        found: dict[int, list[float]] = {}
        for m, rate in self.measured.within(np.inf):
            found.setdefault(m, []).append(rate)
        return dict(sorted(found.items()))
