"""The interface of a capacity model, and the machines a load needs (MST eq. 4, 8, 18, 21)."""

from typing import Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from tidegate.errors import AskedWrongly


class CapacityModel(Protocol):
    """The throughput that m machines sustain, with its uncertainty."""

    def mean(self, m: ArrayLike) -> NDArray[np.float64]:
        """Expected throughput of one interval at m machines; the shape of `m` is kept."""
        ...

    def variance(self, m: ArrayLike) -> NDArray[np.float64]:
        """Predictive variance of one interval's throughput at m machines."""
        ...

    def quantile(self, m: ArrayLike, probability: float) -> NDArray[np.float64]:
        """Throughput that one interval at m machines stays below with this probability."""
        ...

    def observe(self, m: int, throughput: float) -> None:
        """Learn from an interval in which m machines were saturated (III-B)."""
        ...


def check_target(rho: float) -> None:
    """Raise an error for a QoS target outside [0.5, 1), the range that eq. 8 is defined on."""
    if not 0.5 <= rho < 1.0:
        raise AskedWrongly(
            f"rho is {rho:g}, but a QoS target must be in [0.5, 1): give for example 0.95."
        )


@overload
def machines_for(
    load: float,
    rho: float,
    model: CapacityModel,
    max_machines: int,
    *,
    load_variance: float = 0.0,
    model_variance: bool = True,
) -> int: ...


@overload
def machines_for(
    load: NDArray[np.float64],
    rho: float,
    model: CapacityModel,
    max_machines: int,
    *,
    load_variance: NDArray[np.float64] | float = 0.0,
    model_variance: bool = True,
) -> NDArray[np.int64]: ...


def machines_for(
    load: float | NDArray[np.float64],
    rho: float,
    model: CapacityModel,
    max_machines: int,
    *,
    load_variance: float | NDArray[np.float64] = 0.0,
    model_variance: bool = True,
) -> int | NDArray[np.int64]:
    """The fewest machines whose throughput exceeds the load with probability rho.

    With a known load this is eq. 8, and with `load_variance` eq. 21. `model_variance=False` makes
    it eq. 18, or eq. 4 without `load_variance` (so does rho = 0.5). The result is `max_machines`
    where no number of machines is enough. The load may be an array; the model is evaluated once
    for all of 1..max_machines either way.
    """
    check_target(rho)
    m = np.arange(1, max_machines + 1)
    mean = model.mean(m)
    variance = model.variance(m) if model_variance else np.zeros_like(mean)
    loads = np.asarray(load, dtype=np.float64)[..., None]
    load_variances = np.asarray(load_variance, dtype=np.float64)[..., None]
    margin = ndtri(rho) * np.sqrt(variance + load_variances)
    surplus = mean - loads - margin
    # The inequality of eq. 4 is strict; that of eq. 8, which has a margin, allows equality.
    enough = (surplus > 0) | ((surplus == 0) & (margin > 0))
    first = np.where(enough.any(axis=-1), enough.argmax(axis=-1) + 1, max_machines)
    return int(first) if first.ndim == 0 else first.astype(np.int64)
