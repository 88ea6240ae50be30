"""Releases cores while there is nothing to read: an idle pipeline needs only its minimum.

The model cannot tell this. Before the first row it does not know what a batch costs, and what it
knows later are batches with rows. So whether the pipeline is idle is measured: the last look at its
sources found no row, and all rows that had come are done. A pipeline whose batch runs, whose
backlog waits or whose source does not answer is not idle.

Cores that are released have to come back with the next rows. So an idle time must last before it
counts, longer where cores take long to be granted, and twice as long as before where rows came back
soon after the last release.
"""

from tidegate.control.measurement import Measurement
from tidegate.forecast.remembering import Remembered

LEAST_WAIT_S = 30.0
"""A pipeline is left with its cores for at least so long without a row."""
_TRIGGERS = 3.0
"""Triggers at a fixed interval that find no row before cores are released."""
_UNSEEN_S, _UNSEEN_TICKS = 5.0, 2.5
"""After so long in which it could not be seen to be idle, the time counts anew."""
_SOON = 4.0
"""Rows that come within so many waiting times of a release came back soon."""
_LONGEST_PATIENCE = 8.0


class Idleness(Remembered):
    """Sees every tick in time order, and knows for how long the pipeline has been idle."""

    _LEARNED = ("_patience",)

    def __init__(self) -> None:
        self._since_s: float | None = None
        """From when on no row was seen."""
        self._seen_s = 0.0
        """When it was last seen to be idle."""
        self._released_s: float | None = None
        """When cores were released in this idle time."""
        self._waited_s = LEAST_WAIT_S
        self._patience = 1.0

    def observe(self, measurement: Measurement) -> None:
        """Add a tick."""
        at_s = measurement.at_s
        if _has_rows(measurement):
            if self._released_s is not None:
                soon = at_s - self._released_s < _SOON * self._waited_s
                longer = self._patience * (2.0 if soon else 0.5)
                self._patience = min(max(longer, 1.0), _LONGEST_PATIENCE)
            self._since_s = self._released_s = None
        elif measurement.segments and all(one.idle for one in measurement.segments):
            self._since_s = at_s if self._since_s is None else self._since_s
            self._seen_s = at_s
        elif at_s - self._seen_s > max(_UNSEEN_S, _UNSEEN_TICKS * measurement.step_s):
            self._since_s = self._released_s = None

    def lasting_s(self, measurement: Measurement, scale_in_after_s: float) -> float | None:
        """For how long no row has come, once that is long enough to release cores; else None."""
        if self._since_s is None:
            return None
        longest_s = max((one.trigger_s for one in measurement.segments), default=0.0)
        wait_s = max(LEAST_WAIT_S, scale_in_after_s, _TRIGGERS * longest_s) * self._patience
        lasts_s = measurement.at_s - self._since_s
        if self._released_s is None and lasts_s < wait_s:
            return None
        if self._released_s is None and self._seen_s == measurement.at_s:
            self._released_s, self._waited_s = measurement.at_s, wait_s
        return None if self._released_s is None else lasts_s


def _has_rows(measurement: Measurement) -> bool:
    """Whether a row was read during the tick, or one is there that was not."""
    for segment in measurement.segments:
        if segment.backlog_rows > 0.0 or (segment.lag is not None and segment.lag.rows > 0):
            return True
        if any(batch.rows > 0 or batch.shed_rows > 0 for batch in segment.batches):
            return True
    return measurement.backlog_rows > 0.0
