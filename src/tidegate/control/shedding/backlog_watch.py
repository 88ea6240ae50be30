"""Tells a backlog from an overload, because only an overload is a reason to shed.

A backlog are rows that waited when the run began, or that are left in a source behind a read limit,
and the rows that arrive while these are worked off. It is drained, however late it is: nobody is
served if rows that were kept for hours are dropped to meet a latency that they have missed already.
An overload is a rate that the cores cannot carry.
"""

from tidegate.control.measurement import Measurement

_BATCHES = 2.0
"""Rows behind for more than so many batches of the target's length are a backlog."""


class BacklogWatch:
    """Sees every tick, in time order."""

    def __init__(self, mean_s: float) -> None:
        self._mean_s = mean_s
        """The target, as a mean latency."""
        self._first = True
        self.draining = False
        """Whether the next batches work off a backlog."""
        self.behind_rows = 0
        """Rows of a backlog that are left in the source: too old for the target by now."""

    def observe(self, measurement: Measurement) -> None:
        """Look at the segment that reads the sources."""
        if not measurement.segments:
            return
        segment = measurement.segments[0]
        late = [batch.duration_s > self._mean_s for batch in segment.batches]
        if late and self._first:
            # What the first batch took was there before the run.
            self._first, self.draining = False, late[0]
        lag = segment.lag
        normal = _BATCHES * self._mean_s * segment.arrival_rate
        self.behind_rows = 0
        if lag is not None and lag.reachable_rows > max(normal, 1.0):
            self.draining, self.behind_rows = True, lag.reachable_rows
        elif late and not late[-1]:
            self.draining = False
