"""Queueing stations: M/M/k (DRS eq. 1-3), GI/G/k (eq. 5), and networks of them (eq. 4)."""

import functools
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tidegate.models.queueing.erlang import mean_delay, station_delay
from tidegate.models.queueing.network import Network
from tidegate.models.queueing.traffic import visit_ratios

Vector = npt.NDArray[np.float64]
Model = Literal["mmk", "gigk"]
MODELS: tuple[Model, ...] = ("mmk", "gigk")


@functools.lru_cache(maxsize=64)
def _ones(count: int) -> Vector:
    """The variability of M/M/k stations, cached: allocating it anew would slow a decision down."""
    return np.ones(count)


@dataclass(frozen=True, slots=True, eq=False)
class Queues:
    """Queueing stations as columns, in the network's order.

    A variability of 1 makes a station M/M/k.
    """

    arrival_rate: Vector
    """Tuples per second that arrive (lambda_i)."""
    service_rate: Vector
    """Tuples per second that one core completes (mu_i)."""
    variability: Vector
    """(c_a^2 + c_s^2) / 2, which scales the M/M/k wait (eq. 5)."""
    visit_ratio: Vector
    """Visits per external tuple (lambda_i / lambda_0), the weight in eq. 4."""

    @classmethod
    def of(
        cls,
        arrival_rate: npt.ArrayLike,
        service_rate: npt.ArrayLike,
        *,
        variability: npt.ArrayLike | None = None,
        external_rate: float | None = None,
    ) -> "Queues":
        """Stations with these rates: M/M/k unless a variability is given.

        The external rate defaults to the first station's arrival rate.
        """
        arriving = np.asarray(arrival_rate, np.float64)
        serving = np.asarray(service_rate, np.float64)
        varying = _ones(len(arriving)) if variability is None else np.asarray(variability, float)
        if serving.shape != arriving.shape:
            serving = np.full(arriving.shape, serving)
        if varying.shape != arriving.shape:
            varying = np.full(arriving.shape, varying)
        visits = arriving / (arriving[0] if external_rate is None else external_rate)
        return cls(arriving, serving, varying, visits)

    @classmethod
    def of_network(cls, network: Network, model: Model = "mmk") -> "Queues":
        """The operators of a network, with rates from its traffic equations."""
        visits = visit_ratios(network)
        scv = [(one.arrival_scv + one.service_scv) / 2.0 for one in network.operators]
        return cls(
            network.rate * visits,
            np.array([one.service_rate for one in network.operators]),
            np.array(scv) if model == "gigk" else np.ones(len(scv)),
            visits,
        )

    def __len__(self) -> int:
        return len(self.arrival_rate)

    @property
    def load(self) -> Vector:
        """Cores kept busy on average (a = lambda / mu)."""
        return self.arrival_rate / self.service_rate

    @property
    def stable_from(self) -> npt.NDArray[np.int64]:
        """The smallest stable number of cores of each station."""
        return np.floor(self.load).astype(np.int64) + 1

    def utilisation(self, cores: npt.ArrayLike) -> Vector:
        """rho: the share of time that a core is busy."""
        return self.load / np.asarray(cores, np.float64)

    def latency(self, cores: npt.ArrayLike) -> Vector:
        """E[T_i](k_i) in seconds (eq. 1 and 5); `cores` may have further leading dimensions."""
        wait = self.variability * mean_delay(cores, self.load)
        return (wait + 1.0) / self.service_rate

    def network_latency(self, cores: npt.ArrayLike) -> Vector:
        """E[T](k) in seconds (eq. 4): the visit-weighted sum over the last dimension."""
        return np.asarray(np.sum(self.visit_ratio * self.latency(cores), axis=-1))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStation:
    """One M/M/k or GI/G/k operator, with the interface that allocators expect of a station."""

    arrival_rate: float
    service_rate: float
    variability: float = 1.0
    visit_ratio: float = 1.0

    @property
    def load(self) -> float:
        """Cores kept busy on average."""
        return self.arrival_rate / self.service_rate

    @property
    def stable_from(self) -> int:
        """The smallest stable number of cores."""
        return int(self.load) + 1

    def latency(self, cores: int) -> float:
        """E[T](k) in seconds; infinite when the station is unstable."""
        return (self.variability * station_delay(float(cores), self.load) + 1.0) / self.service_rate
