"""How far a calibration is: a bar with the time that is left, and a line per measurement."""

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tidegate.apps.capacity.calibrate import CalibrationStep
from tidegate.apps.capacity.calibration import CountMeasured
from tidegate.models.capacity.calibration_plan import CalibrationPlan

_FEWEST_MORE = 3
"""A measurement takes about as long as N samples and so many more: it starts, and it ends with
short batches."""
_ALL_THE_TIME_S = 86_400.0
"""The time that is left is estimated from all measurements so far, not from the last seconds."""


class CalibrationProgress:
    """Shows the steps of a calibration on a console."""

    def __init__(self, console: Console, name: str, plan: CalibrationPlan) -> None:
        self._name = name
        self._plan = plan
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            speed_estimate_period=_ALL_THE_TIME_S,
        )
        self._task = self._progress.add_task(f"{name}: starting", total=None)

    def __enter__(self) -> "CalibrationProgress":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def step(self, step: CalibrationStep) -> None:
        """Show what is measured now."""
        what = "warming up" if step.use is None else f"{step.cores} cores, {step.use}"
        if self._plan.repeats > 1 and step.use is not None:
            what += f" {step.repeat} of {self._plan.repeats}"
        if step.samples:
            what += f": sample {len(step.samples)}, {step.samples[-1]:,.0f} rows/s"
        part = len(step.samples) / (self._plan.rule.latest + _FEWEST_MORE)
        self._progress.update(
            self._task,
            description=f"{self._name}: {what}",
            total=step.total,
            completed=step.done + min(part, 0.95),
        )

    def measured(self, one: CountMeasured) -> None:
        """Print what a measurement has found."""
        after = f"after {len(one.samples)} samples"
        if not one.converged:
            after = f"not converged {after}"
        self._console.print(
            f"{one.cores} cores ({one.use}, {one.repeat} of {self._plan.repeats}):"
            f" {one.rows_per_s:,.0f} rows/s {after}, batches of {one.batch_s:.2f} s",
            highlight=False,
            markup=False,
        )
