"""The mean of some runs and their deviation: a mark with its error bar in figures 7 to 9."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.sim.capacity.backtest import Score
from tidegate.view.pages.paper import Curve


@dataclass(frozen=True, slots=True)
class MeanAndDeviation:
    """A mean, and one standard deviation around it."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "MeanAndDeviation":
        """That of some values."""
        found = np.array(list(values))
        return cls(float(found.mean()), float(found.std()))

    def shown(self, digits: int) -> str:
        """As a text such as `98.62 ± 1.20`."""
        return f"{self.mean:.{digits}f} ± {self.deviation:.{digits}f}"


@dataclass(frozen=True, slots=True)
class Measures:
    """QoS and costs of some runs (eq. 22-24)."""

    qos: MeanAndDeviation
    """Per cent."""
    over_truth: MeanAndDeviation
    over_peak: MeanAndDeviation

    @classmethod
    def of(cls, scores: Sequence[Score]) -> "Measures":
        """Those of some runs."""
        return cls(
            qos=MeanAndDeviation.of(one.qos for one in scores),
            over_truth=MeanAndDeviation.of(one.cost_vs_truth for one in scores),
            over_peak=MeanAndDeviation.of(one.cost_vs_peak for one in scores),
        )


def with_error_bars(
    name: str, spreads: Mapping[str, MeanAndDeviation] | Mapping[float, MeanAndDeviation]
) -> Curve:
    """A line through means, with a bar of one standard deviation at each."""
    return Curve(
        name,
        tuple(spreads),
        tuple(one.mean for one in spreads.values()),
        deviation=tuple(one.deviation for one in spreads.values()),
    )
