"""Shedding by the model, corrected by feedback: the default.

keep = tau(T) / lambda from the micro-batch station, computed for the very next rounds. The backlog
counts, so a surge is answered in the first round that contains it, before latency shows it.
Feedback only has to correct the model's error: by eq. 7, and with the same gain, it moves the
latency that the model is asked to aim at.
"""

from tidegate.control.shedding.feedback_shedder import FeedbackSteps, corrected, gain
from tidegate.control.shedding.overload_switch import Switch
from tidegate.control.shedding.shedder import Look, check_target, most_keep

CAUTION = 0.5
"""Factor on the gain: the model's error changes slowly, and the full gain would follow noise."""
MOST_CORRECTION = 2.0
"""The aim stays within this factor of the target: if the model is further off than that, moving the
aim does not help."""


class ModelShedder:
    """The default shedder: the model's answer, with an aim that feedback corrects."""

    name = "model"

    def __init__(self, target_s: float) -> None:
        self._target_s = check_target(target_s)
        self._switch = Switch(target_s)
        self._steps = FeedbackSteps()
        self._shed_since_s: float | None = None
        self.aim_s = target_s
        """The latency that the model is asked to aim at, so that the measured one is the target."""

    def keep(self, look: Look) -> float:
        """The largest share that the model expects to be within the corrected aim."""
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
        """Correct the aim, but only by rounds in which rows were shed.

        Otherwise latency does not depend on the aim, and the correction would wind up.
        """
        if self._shed_since_s is None:
            return
        delay_steps = self._steps.delay_steps(look, self._shed_since_s)
        if delay_steps is None or look.latency_s is None:
            return
        aim_s = corrected(self.aim_s, self._target_s, look.latency_s, CAUTION * gain(delay_steps))
        most_s, least_s = self._target_s * MOST_CORRECTION, self._target_s / MOST_CORRECTION
        self.aim_s = min(max(aim_s, least_s), most_s)
