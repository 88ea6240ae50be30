"""The eight applications of the MST paper, with modelled capacity curves for backtests.

The paper prints peaks (table II) and plots the measured curves (fig. 6) without their numbers. The
curves here are models that reach the printed peaks and have the plotted shapes (near-linear,
sub-linear, saturating, and VHT, which does not scale). A backtest uses them as the true capacity;
policies never see them, only noisy samples.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import AskedWrongly, nearest

Vector = NDArray[np.float64]

TRAINING_MACHINES = (3, 4, 6, 8, 24)
"""The machine counts that the paper measures before it predicts up to 128 machines (IV-B)."""
FLIGHT_TRAINING_MACHINES = (1, 2, 3, 5, 6, 8, 9, 11, 12, 14)
MEASUREMENTS_PER_COUNT = 3
"""How often each training count is measured; the paper's fig. 6 shows several marks per count."""


class CapacityCase(Protocol):
    """An application of a backtest: its true capacity, and what a calibration measures of it."""

    @property
    def name(self) -> str:
        """The name in tables."""
        ...

    @property
    def peak(self) -> float:
        """What the largest minute of the trace is scaled to."""
        ...

    @property
    def noise(self) -> float:
        """Standard deviation of an interval's capacity, relative to the mean."""
        ...

    @property
    def rows_per_unit(self) -> float:
        """Rows of a pipeline in one unit of load."""
        ...

    @property
    def fixed_s(self) -> float:
        """What a micro-batch of a pipeline takes besides its rows."""
        ...

    @property
    def per_task_s(self) -> float:
        """What each of its tasks adds to that."""
        ...

    def mean(self) -> Vector:
        """The true capacity of 1, 2, ... machines, in units of load per second."""
        ...

    def samples(self, rng: np.random.Generator) -> list[tuple[int, float]]:
        """Samples of a calibration before the start."""
        ...

    def measure(self, machines: list[int], rng: np.random.Generator) -> list[tuple[int, float]]:
        """Further samples at these machine counts."""
        ...


@dataclass(frozen=True, slots=True)
class ModelledApplication:
    """One application with its modelled capacity, tau(m) = scale m^power / (1 + m / half)."""

    name: str
    peak: float
    """The largest load of the trace for this application, MB/s (table II)."""
    power: float
    """The scaling exponent: 1 is linear, 0 does not scale."""
    half: float
    """The number of machines at which saturation halves the throughput."""
    noise: float
    """Standard deviation of an interval's capacity, relative to the mean (sigma_m / mu_m)."""
    max_machines: int = 128
    peak_machines: int = 100
    """The number of machines at which the capacity is 4 % above the peak."""
    training_machines: tuple[int, ...] = TRAINING_MACHINES
    rows_per_unit: float = 1000.0
    """Rows of a pipeline in a megabyte: rows of a kilobyte."""
    fixed_s: float = 0.3
    """What a micro-batch takes besides its rows: that of a small pipeline on Spark."""
    per_task_s: float = 0.0
    """What each task adds to that; the paper's curves have no such part."""

    def mean(self) -> Vector:
        """mu_m for m = 1 to max_machines, MB/s; 4 % above the peak at `peak_machines`."""
        m = np.arange(1, self.max_machines + 1, dtype=np.float64)
        shape = m**self.power / (1 + m / self.half)
        scale = 1.04 * self.peak / shape[self.peak_machines - 1]
        return np.asarray(np.maximum.accumulate(scale * shape))

    def samples(self, rng: np.random.Generator) -> list[tuple[int, float]]:
        """Samples of a calibration before the start (IV-B): noisy, at few machine counts."""
        mean = self.mean()
        return [
            (m, float(mean[m - 1] * (1 + self.noise * rng.standard_normal())))
            for m in self.training_machines
            for _ in range(MEASUREMENTS_PER_COUNT)
        ]

    def measure(self, machines: list[int], rng: np.random.Generator) -> list[tuple[int, float]]:
        """Further samples at these machine counts, where two models disagree (III-A2)."""
        mean = self.mean()
        return [
            (m, float(mean[m - 1] * (1 + self.noise * rng.standard_normal()))) for m in machines
        ]


APPLICATIONS: dict[str, ModelledApplication] = {
    app.name: app
    for app in (
        ModelledApplication("grep", 32.0, power=1.0, half=600.0, noise=0.03),
        ModelledApplication("rolling-count", 10.0, power=0.88, half=1e9, noise=0.04),
        ModelledApplication(
            "unique-visitor", 48.0, power=1.0, half=90.0, noise=0.04, peak_machines=96
        ),
        ModelledApplication("page-view", 46.0, power=1.0, half=140.0, noise=0.04),
        ModelledApplication("data-clean", 5.0, power=0.94, half=400.0, noise=0.03),
        ModelledApplication("vht", 49.0, power=0.0, half=1e9, noise=0.01, peak_machines=1),
        ModelledApplication("rolling-hashtag-count", 200.0, power=1.0, half=220.0, noise=0.04),
        ModelledApplication(
            "rolling-flight-distances",
            0.83,
            power=0.85,
            half=1e9,
            noise=0.03,
            max_machines=16,
            peak_machines=14,
            training_machines=FLIGHT_TRAINING_MACHINES,
        ),
    )
}


def applications(name: str) -> list[ModelledApplication]:
    """The application of this name, or all eight for `all`."""
    if name == "all":
        return list(APPLICATIONS.values())
    if name not in APPLICATIONS:
        raise AskedWrongly(f"No application is named '{name}'{nearest(name, APPLICATIONS)}")
    return [APPLICATIONS[name]]
