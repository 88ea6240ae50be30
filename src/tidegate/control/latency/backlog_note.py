"""Says beforehand how long a backlog will last where all cores cannot drain it in time."""

import math

from tidegate.units import format_duration

_WRONG = 0.25
"""An estimate is said again if the backlog lasts longer by this share of the time that was said."""


class BacklogNote:
    """Makes one sentence for each backlog, and repeats it until the backlog is gone."""

    def __init__(self) -> None:
        self._said: str | None = None
        self._until_s = 0.0
        """When the backlog should be gone, by what was said."""
        self._takes_s = 0.0

    def note(
        self, rows: float, takes_s: float, cores: int, *, within_s: float, at_s: float
    ) -> str | None:
        """The sentence for a backlog that takes so long on all cores; None if that is in time."""
        if takes_s <= within_s and self._said is None:
            return None
        longer = at_s + takes_s > self._until_s + _WRONG * self._takes_s
        if self._said is None or longer:
            self._until_s, self._takes_s = at_s + takes_s, takes_s
            self._said = (
                f"the backlog of {rows:,.0f} rows needs about {format_duration(takes_s)} on all"
                f" {cores} cores; it was to be gone within {format_duration(within_s)}"
                if math.isfinite(takes_s)
                else f"the backlog of {rows:,.0f} rows grows even on all {cores} cores"
            )
        return self._said

    def over(self) -> None:
        """The backlog is gone."""
        self._said, self._until_s = None, 0.0
