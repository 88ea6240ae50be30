"""One condition as an alarm: raised when it has held for a while, cleared when it has not.

Both take some time, so that a condition that comes and goes is told once and not every second.
"""


class Alarm:
    """Sees a condition again and again, in time order."""

    def __init__(self, *, after_s: float, clear_s: float) -> None:
        self.after_s = after_s
        """It is raised when the condition has held for so long without a break."""
        self.clear_s = clear_s
        """It is cleared when the condition has not held for so long without a break."""
        self.raised = False
        self.since_s = 0.0
        """When the condition began that it was last raised for."""
        self._held_since_s: float | None = None
        self._gone_since_s: float | None = None

    def see(self, holds: bool, at_s: float, since_s: float | None = None) -> bool:
        """Whether the alarm changes now. `since_s` is when the condition began, if before now."""
        if holds:
            self._gone_since_s = None
            if self._held_since_s is None:
                self._held_since_s = at_s if since_s is None else min(since_s, at_s)
            if self.raised or at_s - self._held_since_s < self.after_s:
                return False
            self.raised, self.since_s = True, self._held_since_s
            return True
        self._held_since_s = None
        if not self.raised:
            return False
        if self._gone_since_s is None:
            self._gone_since_s = at_s
        if at_s - self._gone_since_s < self.clear_s:
            return False
        return self.clear()

    def clear(self) -> bool:
        """Clear it at once; whether it was raised."""
        was, self.raised = self.raised, False
        self._held_since_s = self._gone_since_s = None
        return was
