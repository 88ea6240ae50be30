"""Estimates from a simulation, with confidence intervals, and the statistics of a station."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from tidegate.models.queueing.network import Network

CONFIDENCE = 0.99
BATCHES = 32
"""Enough for a stable t quantile, and few enough that batches are nearly independent."""


@dataclass(frozen=True, slots=True)
class ConfidenceInterval:
    """A mean and the half width of its confidence interval, infinite if there are too few data."""

    mean: float
    half_width: float
    confidence: float = CONFIDENCE

    def covers(self, value: float) -> bool:
        """Whether the interval contains this value."""
        return abs(value - self.mean) <= self.half_width


def batch_means(
    values: NDArray[np.float64], batches: int = BATCHES, confidence: float = CONFIDENCE
) -> ConfidenceInterval:
    """The mean of a correlated series by batch means: neighbours wait in the same queues."""
    if values.size == 0:
        return ConfidenceInterval(math.nan, math.inf, confidence)
    mean = float(values.mean())
    length = values.size // batches
    if length < 2:
        return ConfidenceInterval(mean, math.inf, confidence)
    means = values[: length * batches].reshape(batches, length).mean(axis=1)
    return ConfidenceInterval(mean, _half_width(means, confidence), confidence)


def _half_width(means: NDArray[np.float64], confidence: float) -> float:
    quantile = float(stdtrit(means.size - 1, 0.5 + confidence / 2.0))
    return quantile * float(means.std(ddof=1)) / math.sqrt(means.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class StationStatistics:
    """The statistics of one station over the measured window."""

    name: str
    cores: int
    arrival_rate: float
    """Tuples per second that arrived (lambda_i)."""
    arrivals: int
    utilisation: float
    """Share of the cores' time spent in service (rho)."""
    mean_wait_s: float
    mean_sojourn_s: float
    """Wait and service of one visit (E[T_i])."""
    mean_queue: float
    """Tuples waiting, averaged over time."""
    longest_queue: int
    """The maximum over the whole run, including the warm-up."""
    arrival_scv: float
    """The measured scv of the times between arrivals; tuples of one bulk are zero apart."""
    service_scv: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """The measurements over the external tuples that arrived in the `seconds` after the warm-up."""

    network: Network
    allocation: tuple[int, ...]
    seconds: float
    seed: int
    latency: ConfidenceInterval
    """Seconds until every derived tuple was processed (DRS's total sojourn time)."""
    visit_sum: ConfidenceInterval
    """The sum of the sojourn times of all visits, in seconds, which eq. 4 predicts."""
    completed: int
    visits: int
    """Visits of all stations in the whole run, including the warm-up."""
    stations: tuple[StationStatistics, ...]
    arrived_s: NDArray[np.float64]
    """The arrival of each measured external tuple, in order, since the end of the warm-up."""
    latencies_s: NDArray[np.float64]
    """The latency of each of these tuples."""
    visit_sums_s: NDArray[np.float64]
    """The sum over the visits of each of these tuples."""

    def quantile_s(self, share: float) -> float:
        """The latency that this share of the external tuples did not exceed."""
        if not self.latencies_s.size:
            return math.nan
        return float(np.quantile(self.latencies_s, share))


def scv(count: float, total: float, squares: float) -> float:
    """Squared coefficient of variation from a count, a sum and a sum of squares."""
    if count < 2 or total <= 0.0:
        return math.nan
    mean = total / count
    return max(0.0, squares / count - mean * mean) / (mean * mean)
