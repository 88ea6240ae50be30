"""Says of each tick of a run whether it met its target.

A tick that completed no row while rows waited counts with the last latency or the time since then,
whichever is longer, so that a stall does not look like silence. With no row waiting there is
nothing to judge.
"""

from typing import Literal

from tidegate.control.measurement import Latency
from tidegate.control.record import Record

Statistic = Literal["mean", "p50", "p95", "p99"]
"""Which number of a tick's latency is compared with the target."""
_BY_PERCENTILE: dict[int | None, Statistic] = {50: "p50", 95: "p95", 99: "p99"}


def statistic_of(first: Record) -> Statistic:
    """What the target of a run is for, by the options in its first record; else the mean."""
    target = (first.assembly or {}).get("target") or {}
    return _BY_PERCENTILE.get(target.get("percentile"), "mean")


def judged_s(latency: Latency, statistic: Statistic) -> float:
    """The number of a tick's latency that is compared with the target."""
    return float(getattr(latency, f"{statistic}_s"))


class Judge:
    """Judges the ticks of one run, which it is given in their order."""

    def __init__(self, start_s: float, statistic: Statistic) -> None:
        self._statistic = statistic
        self._last_s = 0.0
        self._last_at_s = start_s

    def latency_s(self, record: Record) -> float | None:
        """The latency to judge a tick by; None where there was nothing to judge."""
        tick = record.measurement
        if tick.latency is not None:
            self._last_s, self._last_at_s = judged_s(tick.latency, self._statistic), tick.at_s
        elif tick.backlog_rows <= 0:
            self._last_s, self._last_at_s = 0.0, tick.at_s
            return None
        return max(self._last_s, tick.at_s - self._last_at_s)

    def met(self, record: Record) -> bool | None:
        """Whether a tick met its target; None without a target or anything to judge."""
        latency_s = self.latency_s(record)
        if latency_s is None or record.target_s is None:
            return None
        return latency_s <= record.target_s
