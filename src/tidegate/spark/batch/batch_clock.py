"""Clocks that never go back, for batches and for ticks.

The wall clock of a machine may be set back, by a second or by an hour. A batch's own clock must not
follow: windows and sessions would close twice. Nor must the clock of the control loop: it would
wait an hour for the end of a cooldown.
"""

import time
from collections.abc import Callable


class BatchClock:
    """The clock by which batches are planned, in microseconds since the epoch.

    While the wall clock is behind a time that was already given out, this one goes on at the pace
    of the monotonic clock.
    """

    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._last_us: int | None = None
        self._last_monotonic_ns = 0

    def now_us(self, before_us: int | None = None) -> int:
        """The time of a new batch, later than any before and than `before_us`.

        `before_us` is the time of the plan before, which an earlier run may have written.
        """
        wall_us, monotonic_ns = self._wall_ns() // 1000, self._monotonic_ns()
        now_us = wall_us
        if self._last_us is not None and wall_us <= self._last_us:
            passed_us = (monotonic_ns - self._last_monotonic_ns) // 1000
            now_us = self._last_us + max(1, passed_us)
        if before_us is not None:
            now_us = max(now_us, before_us + 1)
        self._last_us, self._last_monotonic_ns = now_us, monotonic_ns
        return now_us


class TickClock:
    """Notices when the wall clock is set back between two ticks, and makes up for it."""

    def __init__(self, now_s: float) -> None:
        self._last_s = now_s
        self.shift_s = 0.0
        """How far the controller's time is ahead of the wall clock."""
        self.interval_s = 0.0
        """The length of the last tick."""

    def tick(self, now_s: float, usual_s: float) -> bool:
        """Note the time of a tick; True if the wall clock went back. Then `usual_s` has passed."""
        went_back = now_s < self._last_s
        self.interval_s = usual_s if went_back else max(now_s - self._last_s, 1e-3)
        if went_back:
            self.shift_s += self._last_s - now_s + usual_s
        self._last_s = now_s
        return went_back
