"""The latency target: a duration, for the mean sojourn or for one of its percentiles.

The latency policy plans by the predicted percentile itself (`models/microbatch/percentile`). Others
plan by means: in the steady state of one segment a row's sojourn is uniform between D and 2 D,
where D is the duration of a micro-batch, so each percentile is a known multiple of the mean, 1.5 D.
"""

import math
from dataclasses import dataclass

from tidegate.control.measurement import Latency
from tidegate.errors import AskedWrongly
from tidegate.units import exact_duration

STEADY_RATIO = {None: 1.0, 50: 1.0, 95: 1.95 / 1.5, 99: 1.99 / 1.5}
"""Each percentile over the mean in the steady state; None is the mean itself."""


@dataclass(frozen=True, slots=True)
class Target:
    """The latency that is to be held: a mean or a percentile."""

    latency_s: float
    percentile: int | None = None
    """50, 95 or 99; None: the mean."""

    def __post_init__(self) -> None:
        if not 0.0 < self.latency_s < math.inf:
            raise AskedWrongly(
                f"the latency target must be a positive duration, not {self.latency_s} s"
            )
        if self.percentile not in STEADY_RATIO:
            raise AskedWrongly(
                f"a target on percentile {self.percentile} is not possible; give 50, 95 or 99, or"
                " none for the mean"
            )

    @property
    def share(self) -> float | None:
        """The share of rows whose sojourn is to be within the target; None: the mean is."""
        return None if self.percentile is None else self.percentile / 100.0

    @property
    def steady_ratio(self) -> float:
        """The targeted percentile over the mean in the steady state; 1 for a target on the mean."""
        return STEADY_RATIO[self.percentile]

    @property
    def mean_s(self) -> float:
        """The mean latency of a steady pipeline that is just on target."""
        return self.latency_s / self.steady_ratio

    def measured_s(self, latency: Latency) -> float:
        """The measured latency that the target is compared with."""
        if self.percentile is None:
            return latency.mean_s
        return {50: latency.p50_s, 95: latency.p95_s, 99: latency.p99_s}[self.percentile]

    def as_mean_s(self, latency: Latency) -> float:
        """The mean that a steady pipeline with this measured latency would have."""
        return self.measured_s(latency) / self.steady_ratio

    @property
    def kind(self) -> str:
        """`mean` or `p95`, for messages."""
        return "mean" if self.percentile is None else f"p{self.percentile}"

    def __str__(self) -> str:
        return exact_duration(self.latency_s)
