"""What a pipeline may have at a tick: the bounds its user gave, and its share of the application.

A measurement describes the pipeline; a constraint describes what is allowed. The controller passes
both to the policy side by side, so that no measurement has to be edited to carry a limit.
"""

from dataclasses import dataclass

from tidegate.control.bounds import Bounds


@dataclass(frozen=True, slots=True)
class Constraints:
    """The limits that a decision must stay within."""

    bounds: Bounds
    """What the user allows."""
    share: int | None = None
    """Cores that the application's other pipelines leave to this one; None when it is alone."""
    step: int = 1
    """Cores come and go in multiples of this: those of a whole executor."""

    def whole(self, cores: int) -> int:
        """So many cores in whole executors, rounded up; down where the maximum is lower."""
        step = self.step
        return max(min(-(-cores // step), self.allowed.most // step), 1) * step

    @property
    def allowed(self) -> Bounds:
        """The bounds within the share."""
        return self.bounds.within(self.share)
