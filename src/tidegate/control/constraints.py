"""What a pipeline may have at a tick: the bounds its user gave, and its share of the application.

A measurement says what is, a constraint says what is allowed. They reach a policy side by side and
from one place, the controller, so that nobody has to edit a measurement on its way.
"""

from dataclasses import dataclass

from tidegate.control.bounds import Bounds


@dataclass(frozen=True, slots=True)
class Constraints:
    """What a decision must keep to."""

    bounds: Bounds
    """What the user allows."""
    share: int | None = None
    """Of the application's cores, those that this pipeline may ask for beside the other pipelines;
    None when it shares with nobody."""

    @property
    def allowed(self) -> Bounds:
        """The bounds within the share."""
        return self.bounds.within(self.share)
