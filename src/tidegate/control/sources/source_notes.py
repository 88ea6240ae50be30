"""Says where the limit is the source and not the cores, and what would help.

Each note names one cause: a partition that is stuck, a partition that is much hotter than the
others, tasks of the reading stage that are fewer than the cores, and a read limit that lets fewer
rows in than arrive. Where several apply, all are said: they have different remedies. The sentences
have no figures that change with every tick, so that a view shows each of them once.
"""

from tidegate.control.lag import Lag, PartitionLag
from tidegate.control.measurement import Measurement, SegmentMeasurement
from tidegate.control.sources.hot_partitions import HotPartitions
from tidegate.control.sources.reading_tasks import read_inside

_FULL = 0.95
"""A batch that takes this share of its read limit is limited by it."""
_FULL_BATCHES = 3
"""So many such batches in a row, while rows stay behind, mean that the limit is too low."""


class SourceNotes:
    """Sees every tick in time order, and returns the notes for its record."""

    def __init__(self) -> None:
        self._segments: dict[str, _SegmentSources] = {}

    def notes(self, measurement: Measurement) -> tuple[str, ...]:
        """What a person should know about the sources; empty if they limit nothing."""
        found: list[str] = []
        for segment in measurement.segments:
            seen = self._segments.setdefault(segment.name, _SegmentSources())
            if segment.lag is not None:
                seen.observe(segment, segment.lag, measurement.at_s)
                found += _stuck_notes(segment.lag)
                found += seen.notes(segment, segment.lag)
                found += _reading_note(measurement, segment, segment.lag)
        return tuple(found)


class _SegmentSources:
    """What the sources of one segment did over the last ticks."""

    def __init__(self) -> None:
        self._hot = HotPartitions()
        self._full = 0
        """How many of the last batches in a row took all that they may."""
        self._rate_limited: float | None = None
        """Rows per second that such batches took, in the newest tick that had some."""

    def observe(self, segment: SegmentMeasurement, lag: Lag, at_s: float) -> None:
        """Add a tick."""
        self._hot.observe(lag.partitions, at_s)
        if lag.limit_rows is None or not lag.rows:
            self._full = 0
            return
        for batch in segment.batches:
            rows = batch.rows + batch.shed_rows
            full = rows >= _FULL * lag.limit_rows
            self._full = self._full + 1 if full else 0
            if full:
                self._rate_limited = rows / max(batch.duration_s, segment.trigger_s, 1e-3)

    def notes(self, segment: SegmentMeasurement, lag: Lag) -> list[str]:
        """What is said of hot partitions and of the read limit."""
        found = [_hot_note(one, times, lag) for one, times in self._hot.found()]
        limited = self._rate_limited
        if self._full >= _FULL_BATCHES and limited is not None and limited < segment.arrival_rate:
            found.append(
                f"batches take all of the read limit of {lag.limit_rows:,d} rows, and still fewer"
                " rows a second than arrive: raise maxOffsetsPerTrigger; where a batch's fixed cost"
                " is what lasts, no number of cores helps"
            )
        return found


def _stuck_notes(lag: Lag) -> list[str]:
    return [
        f"{one.name} is stuck: it grows, and nothing is read from it. Other partitions are read, so"
        " no core is added for it; look at its leader and at the transactions open on it"
        for one in lag.partitions
        if one.stuck
    ]


def _hot_note(one: PartitionLag, times: float, lag: Lag) -> str:
    more = "minPartitions" if lag.min_partitions is None else "a higher minPartitions"
    return (
        f"{one.name} gets {_times(times)} as many rows as the mean of the others, and one task"
        f" reads it: {more} splits it, and a better key or more partitions spread its rows"
    )


def _times(times: float) -> str:
    """A factor that does not change with every tick."""
    return "many times" if times >= 10.0 else f"about {times:.0f} times"


def _reading_note(measurement: Measurement, segment: SegmentMeasurement, lag: Lag) -> list[str]:
    """A note where the stage that reads has fewer tasks than there are cores for it."""
    readers = lag.readers
    if readers is None or readers >= segment.tasks or segment.arrival_rate <= 0.0:
        return []
    inside = read_inside(measurement, segment.name)
    if inside is None:
        return []
    who = f", so '{inside[0]}' has no more tasks" if inside else ""
    return [
        f"the stage that reads has {readers} tasks for {segment.tasks} cores{who}: set"
        f" minPartitions to {segment.tasks} or more, or give the topic more partitions"
    ]
