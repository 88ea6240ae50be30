"""What a calibration has found: the measurements, the fitted capacity, and how well it predicts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tidegate.models.capacity.batch_overhead import fit_overhead
from tidegate.models.capacity.calibration_plan import CalibrationPlan
from tidegate.models.capacity.fitted import CapacityFit, PredictedThroughput, fit_capacity
from tidegate.models.capacity.measured import CapacitySample, MeasuredCapacity

Use = Literal["fit", "validation", "check"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountMeasured:
    """One measurement: what a number of cores processed until it converged."""

    cores: int
    repeat: int
    """From 1."""
    use: Use
    samples: tuple[float, ...]
    """Rows per second of each micro-batch, oldest first."""
    converged: bool
    rows_per_s: float
    """The maximum sustainable throughput: that of the last N samples together."""
    batch_rows: int
    batch_s: float
    """The mean duration of their micro-batches."""
    overhead_s: float
    """a(k): what a micro-batch takes besides its rows."""
    seconds: float
    """How long the measurement took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A prediction at a number of cores that was not used for the fit, beside the measurement."""

    cores: int
    measured: float
    """Rows per second, the mean of the repetitions."""
    predicted: PredictedThroughput

    @property
    def error(self) -> float:
        """How far the prediction is off, as a share of what was measured."""
        return self.predicted.rows_per_s / self.measured - 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityCalibration:
    """Everything that was measured of a pipeline. At least one measurement was for the fit."""

    name: str
    plan: CalibrationPlan
    runs: tuple[CountMeasured, ...]
    stretched: bool = False
    interrupted: bool = False
    """Whether Ctrl-C ended it before all was measured."""

    def fit(self, latency_s: float | None = None) -> CapacityFit:
        """The fitted capacity: for ever, or within a mean latency.

        The second is tau = (1 - 1.5 a / T) / c of each measurement (`CapacitySample.within`), with
        the curve that was chosen for the first.
        """
        if latency_s is None:
            training, validation = (
                [(one.cores, one.rows_per_s) for one in self._of(use)]
                for use in ("fit", "validation")
            )
            return fit_capacity(training, validation, most=self.plan.predicted)
        within = self.measured.within(latency_s)
        return fit_capacity(within, most=self.plan.predicted, curve=self.measured.curve)

    @property
    def measured(self) -> MeasuredCapacity:
        """The capacity file: all samples but those of checks, and the curve that was chosen."""
        used = self._of("fit", "validation")
        fixed_s, per_task_s = fit_overhead((one.cores, one.overhead_s) for one in used)
        return MeasuredCapacity(
            pipeline=self.name,
            samples=tuple(
                CapacitySample(cores=one.cores, rows_per_s=one.rows_per_s, batch_s=one.batch_s)
                for one in sorted(used, key=lambda one: (one.cores, one.repeat))
            ),
            fixed_s=fixed_s,
            per_task_s=per_task_s,
            curve=self.fit().curve,
            stretched=self.stretched,
        )

    @property
    def checks(self) -> tuple[Check, ...]:
        """The predictions of the checked numbers of cores, which no fit has seen."""
        rates = _by_cores(self._of("check"))
        predicted = self.fit().predict(list(rates)) if rates else ()
        return tuple(
            Check(cores=one.cores, measured=rates[one.cores], predicted=one) for one in predicted
        )

    @property
    def rates(self) -> dict[int, float]:
        """Rows per second by number of cores, the mean of the repetitions, checks included."""
        return _by_cores(self.runs)

    def _of(self, *uses: Use) -> list[CountMeasured]:
        return [one for one in self.runs if one.use in uses]


def _by_cores(runs: Iterable[CountMeasured]) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for one in runs:
        found.setdefault(one.cores, []).append(one.rows_per_s)
    return {cores: float(np.mean(rates)) for cores, rates in sorted(found.items())}
