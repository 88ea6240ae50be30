"""What a calibration tells while it runs: how far it is, and a line per measurement."""

from tidegate.apps.capacity.calibrate import CalibrationStep
from tidegate.apps.capacity.calibration import CountMeasured
from tidegate.models.capacity.calibration_plan import CalibrationPlan
from tidegate.view.live.progress import ShownProgress

_FEWEST_MORE = 3
"""A measurement takes about as long as N samples and so many more: it starts, and it ends with
short batches."""
_NOT_OVER = 0.95
"""How far a measurement is at most before it is over."""


class CalibrationProgress:
    """Turns the steps of a calibration into progress."""

    def __init__(self, shown: ShownProgress, plan: CalibrationPlan) -> None:
        self._shown = shown
        self._plan = plan
        self._begun = False

    def step(self, step: CalibrationStep) -> None:
        """Show what is measured now."""
        if not self._begun:
            self._shown.progress.expect(step.total)
            self._begun = True
        what = "warming up" if step.use is None else f"{step.cores} cores, {step.use}"
        if self._plan.repeats > 1 and step.use is not None:
            what += f" {step.repeat} of {self._plan.repeats}"
        if step.samples:
            what += f": sample {len(step.samples)}, {step.samples[-1]:,.0f} rows/s"
        part = len(step.samples) / (self._plan.rule.latest + _FEWEST_MORE)
        done = step.done + min(part, _NOT_OVER)
        self._shown.progress.reached(done, what, total=step.total)

    def measured(self, one: CountMeasured) -> None:
        """Print what a measurement has found."""
        after = f"after {len(one.samples)} samples"
        if not one.converged:
            after = f"not steady even {after}"
        self._shown.say(
            f"{one.cores} cores ({one.use}, {one.repeat} of {self._plan.repeats}):"
            f" {one.rows_per_s:,.0f} rows/s {after}, batches of {one.batch_s:.2f} s"
        )
