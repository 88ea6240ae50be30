"""The capacity that samples of a calibration show: fitted, chosen, and predicted at any count.

Both curves of MST are fitted (eq. 2, 3) and one is chosen (III-A2). A prediction has the error of
the weights beside the noise of a sample, because numbers of cores that were not measured are what
it is made for. Samples that are too few for the curves go into the Bayesian model.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from tidegate.models.capacity.bayes import BayesianCapacity
from tidegate.models.capacity.choice import candidates, choose, disagreements
from tidegate.models.capacity.curves import CapacityCurve, fit
from tidegate.models.capacity.online import enough
from tidegate.models.capacity.samples import Samples
from tidegate.models.capacity.shapes import Shape

COVERAGE = 0.95
"""The probability that a measurement lies in the interval of its prediction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedThroughput:
    """What a measurement on a number of cores is expected to find."""

    cores: int
    rows_per_s: float
    standard_error: float
    """Of one measurement around the prediction."""
    low: float
    high: float
    """Between these with a probability of 95 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityFit:
    """The model that was chosen, and why."""

    model: CapacityCurve | BayesianCapacity
    reason: str
    errors: Mapping[str, float] = field(default_factory=dict)
    """Root mean squared error of each curve on the samples that decided, in rows per second."""

    @property
    def curve(self) -> str | None:
        """The curve of MST; None for the Bayesian model."""
        return self.model.shape.value if isinstance(self.model, CapacityCurve) else None

    @property
    def weights(self) -> tuple[float, ...]:
        """w0, w1, ... of the curve; none for the Bayesian model."""
        return tuple(self.model.weights) if isinstance(self.model, CapacityCurve) else ()

    def predict(self, cores: Collection[int]) -> tuple[PredictedThroughput, ...]:
        """The throughput on each number of cores."""
        m = np.array(list(cores), dtype=np.int64)
        mean, deviation, low, high = self._distribution(m)
        return tuple(
            PredictedThroughput(
                cores=int(count),
                rows_per_s=float(mean[i]),
                standard_error=float(deviation[i]),
                low=max(float(low[i]), 0.0),
                high=float(high[i]),
            )
            for i, count in enumerate(m)
        )

    def _distribution(self, m: NDArray[np.int64]) -> tuple[NDArray[np.float64], ...]:
        """Mean, deviation and bounds of a measurement."""
        tail = (1.0 - COVERAGE) / 2.0
        mean = self.model.mean(m)
        if isinstance(self.model, BayesianCapacity):
            deviation = np.sqrt(self.model.variance(m))
            return mean, deviation, self.model.quantile(m, tail), self.model.quantile(m, 1 - tail)
        deviation = np.hypot(self.model.noise * mean, self.model.standard_error(m))
        reach = float(stdtrit(self.model.freedom, 1.0 - tail)) * deviation
        return mean, deviation, mean - reach, mean + reach


def fit_capacity(
    samples: Samples, validation: Samples = (), *, most: int, curve: str | None = None
) -> CapacityFit:
    """Fit both curves to pairs (cores, rows per second), and choose by the validation samples.

    `curve` is the one that was chosen before; then the other is not fitted.
    """
    training, checks = list(samples), list(validation)
    if not enough(training):
        model = BayesianCapacity([*training, *checks], max_machines=most)
        return CapacityFit(model=model, reason="too few samples for the curves of MST")
    choice = choose(training, checks, most, only=None if curve is None else Shape(curve))
    return CapacityFit(model=choice.model, reason=choice.reason, errors=choice.errors)


def validation_counts(
    samples: Samples,
    *,
    most: int,
    count: int,
    threshold: float,
    without: Collection[int] = (),
) -> list[int]:
    """Numbers of cores that are worth a validation sample (III-A2): where the curves disagree.

    A curve whose fit is refused is out, and in its place is the best rising one of its shape: where
    that one is far from the other, a sample is worth as much. There is none while samples are too
    few.
    """
    training = list(samples)
    if count < 1 or not enough(training):
        return []
    fitted, _ = candidates(training, most)
    curves = [fitted.get(one) or fit(training, one, most, constrained=True) for one in Shape]
    return disagreements(*curves, threshold=threshold, count=count, without=without)
