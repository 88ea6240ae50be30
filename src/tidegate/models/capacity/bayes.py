"""A Bayesian capacity model: the predictive distribution of tau(m) (beyond MST eq. 5-7).

Eq. 7 gives every machine count the same variance, estimated from as little as one degree of
freedom, and ignores that the curve is uncertain where nothing was measured. Here log tau is a
straight line in log m whose slope may change at knots (a power law that bends). On that scale
linear, sub-linear and saturating applications, and those that do not scale, are all straight or
gently bent, and noise proportional to the throughput is constant. With the conjugate prior (normal,
inverse gamma) the predictive distribution of log tau(m) is Student's t in closed form, an update
is a rank-one sum, and one matrix product evaluates all machine counts.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from tidegate.errors import AskedWrongly
from tidegate.models.capacity.samples import Samples, check_sample

Vector = NDArray[np.float64]

SLOPE_MEAN = 0.8
"""Prior slope in log-log: 1 is linear scaling, 0 is none."""
SLOPE_SD = 0.4
SLOPE_CHANGE_SD = 0.2
"""Prior standard deviation of the slope's change at a knot (knots lie at powers of two)."""
LEVEL_SD = 3.0
"""Prior standard deviation of log tau around the first sample: a factor of twenty either way."""
MAX_LOG_SD = 1.0
"""Cap on the standard deviation of log tau, used only for the mean and variance of tau: they do not
exist when log tau has a Student's t distribution."""


class BayesianCapacity:
    """Predictive distribution of tau(m); few samples mean wide intervals.

    `noise` is the prior guess of a sample's relative noise, and counts as `noise_samples` samples.
    `forgetting` below 1 gives old samples less weight, for machines whose speed drifts.
    """

    def __init__(
        self,
        samples: Samples = (),
        *,
        max_machines: int = 128,
        noise: float = 0.05,
        noise_samples: float = 3.0,
        forgetting: float = 1.0,
    ) -> None:
        if not 0.0 < forgetting <= 1.0:
            raise AskedWrongly(
                f"forgetting is {forgetting:g}, but must be in (0, 1]: give 1 to forget nothing."
            )
        knots = np.log(2.0 ** np.arange(1, max(int(np.log2(max(max_machines, 2))), 1) + 1))
        self._knots = knots[knots < np.log(max(max_machines, 2))]
        self._forgetting = forgetting
        spread = np.concatenate([[LEVEL_SD, SLOPE_SD], np.full(len(self._knots), SLOPE_CHANGE_SD)])
        # The conjugate prior is scaled by the noise: Var(w) = sigma^2 / precision.
        self._prior_precision = np.diag((noise / spread) ** 2)
        self._prior_weights = np.zeros(len(spread))
        self._prior_weights[1] = SLOPE_MEAN
        self._precision = np.zeros_like(self._prior_precision)
        self._moment = np.zeros(len(spread))
        self._squares = 0.0
        self._seen = 0.0
        self._prior_seen = noise_samples
        self._prior_squares = noise_samples * noise**2
        self._centre: float | None = None
        self._posterior: tuple[Vector, Vector, float, float] | None = None
        self._table: tuple[Vector, Vector] | None = None
        self._max_machines = max_machines
        for m, throughput in samples:
            self.observe(m, throughput)

    @property
    def known(self) -> bool:
        """Whether there is any sample."""
        return self._centre is not None

    @property
    def degrees_of_freedom(self) -> float:
        """Degrees of freedom of the Student's t: one more with each sample."""
        return self._prior_seen + self._seen

    def observe(self, m: int, throughput: float) -> None:
        """Learn from a saturated interval (III-B)."""
        check_sample(m, throughput)
        if self._centre is None:
            self._centre = float(np.log(throughput)) - SLOPE_MEAN * float(np.log(m))
        row = self._features(np.asarray(float(m)))
        target = float(np.log(throughput)) - self._centre
        keep = self._forgetting
        self._precision = keep * self._precision + np.outer(row, row)
        self._moment = keep * self._moment + row * target
        self._squares = keep * self._squares + target * target
        self._seen = keep * self._seen + 1.0
        self._posterior = None
        self._table = None

    def mean(self, m: ArrayLike) -> Vector:
        """Expected throughput at m machines."""
        location, scale = self._log_prediction(m)
        return np.asarray(np.exp(location + self._log_variance(scale) / 2))

    def variance(self, m: ArrayLike) -> Vector:
        """Predictive variance of one interval's throughput at m machines."""
        location, scale = self._log_prediction(m)
        log_variance = self._log_variance(scale)
        return np.asarray(np.expm1(log_variance) * np.exp(2 * location + log_variance))

    def quantile(self, m: ArrayLike, probability: float) -> Vector:
        """Exact quantile of the predictive distribution of tau(m)."""
        location, scale = self._log_prediction(m)
        return np.asarray(
            np.exp(location + float(stdtrit(self.degrees_of_freedom, probability)) * scale)
        )

    def _features(self, m: Vector) -> Vector:
        log_m = np.log(m)[..., None]
        return np.concatenate(
            [np.ones_like(log_m), log_m, np.maximum(log_m - self._knots, 0.0)], axis=-1
        )

    def _solved(self) -> tuple[Vector, Vector, float, float]:
        """Posterior weights, their covariance over the noise variance, that variance, offset."""
        if self._posterior is None:
            if self._centre is None:
                raise AskedWrongly(
                    "The capacity model has no sample yet: observe one saturated interval, or "
                    "give it calibration samples."
                )
            precision = self._prior_precision + self._precision
            covariance: Vector = np.asarray(np.linalg.inv(precision), dtype=np.float64)
            weights = covariance @ (self._prior_precision @ self._prior_weights + self._moment)
            prior_squares = self._prior_weights @ self._prior_precision @ self._prior_weights
            squares = (
                self._prior_squares + self._squares + prior_squares - weights @ precision @ weights
            )
            scale = max(float(squares), 1e-12) / self.degrees_of_freedom
            self._posterior = (weights, covariance, scale, self._centre)
        return self._posterior

    def _log_prediction(self, m: ArrayLike) -> tuple[Vector, Vector]:
        """Location and scale of the Student's t of log tau(m), from a table over 1..max."""
        if self._table is None:
            weights, covariance, noise, centre = self._solved()
            rows = self._features(np.arange(1.0, self._max_machines + 1.0))
            spread = ((rows @ covariance) * rows).sum(axis=-1)
            self._table = (centre + rows @ weights, np.sqrt(noise * (1.0 + spread)))
        machines = np.asarray(m)
        if machines.size and (machines.min() < 1 or machines.max() > self._max_machines):
            raise AskedWrongly(
                f"The capacity model covers 1 to {self._max_machines} machines, but was asked for "
                f"{int(machines.min())} to {int(machines.max())}: raise its max_machines."
            )
        index = machines.astype(np.intp) - 1
        return self._table[0][index], self._table[1][index]

    def _log_variance(self, scale: Vector) -> Vector:
        freedom = self.degrees_of_freedom
        inflate = freedom / (freedom - 2.0) if freedom > 2.0 else 3.0
        return np.asarray(np.minimum(scale * scale * inflate, MAX_LOG_SD**2))
