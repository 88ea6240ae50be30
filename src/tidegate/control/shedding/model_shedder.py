"""Shedding by the model, corrected by feedback: the default.

keep = tau(T) / lambda from the micro-batch station, taken for the very rounds that come next: rows
that wait already count, so a load that leaps is answered in the round that meets it and not after
latency has shown it. Feedback has only the model's error left to mend: it moves the aim that the
model is asked to hold by eq. 7, with the same gain.
"""

from tidegate.control.shedding.feedback_shedder import FeedbackSteps, corrected, gain
from tidegate.control.shedding.overload_switch import Switch
from tidegate.control.shedding.shedder import Look, check_target, most_keep

CAUTION = 0.5
"""Of the gain: a model's error changes slowly, and a full gain would follow the noise of rounds."""
MOST_CORRECTION = 2.0
"""The aim stays between the target over and times this: a model further off is not to be mended by
asking it for something else."""


class ModelShedder:
    """See the module's text."""

    name = "model"

    def __init__(self, target_s: float) -> None:
        self._target_s = check_target(target_s)
        self._switch = Switch(target_s)
        self._steps = FeedbackSteps()
        self._shed_since_s: float | None = None
        self.aim_s = target_s
        """What the model is asked for, so that the target is measured."""

    def keep(self, look: Look) -> float:
        """The share that the model says, for the aim that feedback says."""
        if not self._switch.update(look, self.aim_s):
            self._shed_since_s = None
            return 1.0
        self._correct(look)
        keep = most_keep(look.outlook.latency_s, self.aim_s)
        if keep >= 1.0:
            self._shed_since_s = None
        elif self._shed_since_s is None:
            self._shed_since_s = look.at_s
        return keep

    def _correct(self, look: Look) -> None:
        """Only by rounds that were shed: with nothing shed, the latency is not ours (wind-up)."""
        if self._shed_since_s is None:
            return
        delay_steps = self._steps.delay_steps(look, self._shed_since_s)
        if delay_steps is None or look.latency_s is None:
            return
        aim_s = corrected(self.aim_s, self._target_s, look.latency_s, CAUTION * gain(delay_steps))
        most_s, least_s = self._target_s * MOST_CORRECTION, self._target_s / MOST_CORRECTION
        self.aim_s = min(max(aim_s, least_s), most_s)
