"""Event time per source: how far each source has come, and the watermark that follows from it.

The watermark of an operator is the minimum over its sources of (newest event - delay), as in Spark,
and it never goes back. A source that delivers nothing would hold it back for ever. So a source is
left out while it is idle, and counts again with its next row. All of this is kept in the version,
so that a replayed micro-batch decides exactly as the first try did.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

IDLE_US = 300_000_000
"""Unless the user says otherwise, a source is idle when it has delivered no row for five minutes
while the pipeline ran."""
BATCHES_OF_SILENCE = 5
"""A source is idle after no fewer micro-batches without rows. A pause of the whole pipeline is no
idleness of one source: after it, each source gets several of them to deliver what it has."""
ALL = ""
"""The name under which rows are counted where they all come from one source."""


@dataclass(frozen=True, slots=True)
class SourceTime:
    """How far one source has come."""

    newest_us: int | None = None
    """Its newest event; None before the first one."""
    idle_us: int = 0
    """How long it has delivered nothing, by the clocks of the micro-batches."""
    limit_us: int = IDLE_US
    """From when on it is idle. It is kept with the rest, so that a replay does not depend on what
    the pipeline is started with."""

    @property
    def idle(self) -> bool:
        """Whether it does not hold back the watermark."""
        return self.idle_us >= self.limit_us


EventTimes = Mapping[str, SourceTime]


def watermark_us(times: EventTimes, delay_us: int, handed_us: int | None) -> int | None:
    """The watermark after these event times; `handed_us` is the one before, which it keeps up."""
    awake = [time for time in times.values() if not time.idle] or list(times.values())
    newest = [time.newest_us for time in awake]
    known = [us for us in newest if us is not None]
    if not known or len(known) < len(newest):
        return handed_us  # a source that may still deliver its first rows holds it back
    reached = min(known) - delay_us
    return reached if handed_us is None else max(reached, handed_us)


def advanced(
    times: EventTimes,
    sources: Collection[str],
    newest_us: Mapping[str, int],
    passed_us: int,
    limit_us: int = IDLE_US,
) -> dict[str, SourceTime]:
    """The event times after a batch in which these sources had these newest events.

    `passed_us` is the time since the batch before, and `limit_us` from when on a source is idle. A
    source that is new here begins where the whole stream was, if it was counted as one until now.
    """
    passed_us = min(max(passed_us, 0), limit_us // BATCHES_OF_SILENCE)
    before = times.get(ALL, SourceTime())
    after = {}
    for name in sources:
        old = times.get(name, before)
        new_us = newest_us.get(name)
        if new_us is None:
            idle_us = min(old.idle_us + passed_us, limit_us)
            after[name] = SourceTime(old.newest_us, idle_us, limit_us)
        else:
            after[name] = SourceTime(
                new_us if old.newest_us is None else max(old.newest_us, new_us), 0, limit_us
            )
    return after


def to_json(times: EventTimes) -> dict[str, Any]:
    """The form in the manifest."""
    return {
        name: [time.newest_us, time.idle_us, *([time.limit_us] if time.limit_us != IDLE_US else [])]
        for name, time in times.items()
    }


def from_json(document: dict[str, Any]) -> dict[str, SourceTime]:
    """The reverse; manifests of earlier versions have one newest event for all sources."""
    if "event_times" in document:
        return {name: SourceTime(*time) for name, time in document["event_times"].items()}
    newest_us = document["newest_event_us"]
    return {} if newest_us is None else {ALL: SourceTime(newest_us)}
