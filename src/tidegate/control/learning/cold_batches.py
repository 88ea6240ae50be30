"""Tells a batch that was late because workers were starting from one that had too many rows.

A run's first batch, and the first one with new tasks or executors, is cold: Spark plans and
compiles code, Python workers start, modules are loaded. More cores do not shorten any of that. What
its tasks took in the operators is at most what its rows need on warm workers; the rest is start-up,
besides the fixed cost that every batch has.
"""

from dataclasses import dataclass

from tidegate.control.batch_parts import OWN_PLAN, PLANNING, SLOWEST, STAGES, STARTING
from tidegate.control.learning.outliers import COLD, FIRST, NEW_EXECUTORS, NEW_TASKS
from tidegate.control.measurement import BatchMeasurement, Measurement
from tidegate.units import format_duration

_COLD = (FIRST, COLD, NEW_TASKS, NEW_EXECUTORS)
_START_UP = (PLANNING, OWN_PLAN, STAGES, STARTING)
"""The parts of a batch that are long while code is loaded and compiled and workers start."""
_WINDOW_S = 5.0
"""A measured latency is that of the batches of at most the last so many seconds."""


@dataclass(frozen=True, slots=True)
class ColdBatch:
    """A batch that ran while workers started: how long it took, and for what."""

    what: str
    """Which batch it was, in words."""
    took_s: float
    rows: int
    tasks: int
    rows_s: float
    """What its rows took in its tasks. On warm workers they need no longer than that."""
    start_up_s: float
    """What was planning, compiling and starting, those of a warm batch included."""

    @property
    def warm_s(self) -> float:
        """What is left of its duration without start-up."""
        return self.took_s - self.start_up_s

    @property
    def work_s(self) -> float:
        """Core seconds per row, at most; 0 if it had no rows."""
        return self.rows_s * self.tasks / self.rows if self.rows > 0 else 0.0

    @property
    def words(self) -> str:
        """What it took, and what of that was start-up, for a reason."""
        need = (
            f"its rows need {format_duration(self.rows_s)}" if self.rows > 0 else "it had no rows"
        )
        return (
            f"{self.what} took {format_duration(self.took_s)}, of which"
            f" {format_duration(self.start_up_s)} were start-up: {need}"
        )


def cold_batch(batch: BatchMeasurement) -> ColdBatch | None:
    """What is known of a cold batch; None if the batch was warm, or does not tell of its tasks.

    A pipeline's tasks tell the slowest of each stage. Of queries of others, Spark tells the time of
    all tasks, which the cores share.
    """
    if batch.outlier not in _COLD or not batch.duration_s > 0.0:
        return None
    parts = batch.parts_s
    if SLOWEST in parts:
        rows_s = parts[SLOWEST]
        start_up_s = sum(parts.get(name, 0.0) for name in _START_UP)
    elif batch.busy_s is not None:
        rows_s = max(batch.busy_s - batch.rowless_s, 0.0) / max(batch.tasks, 1)
        start_up_s = batch.duration_s - rows_s
    else:
        return None
    rows_s = min(rows_s, batch.duration_s)
    start_up_s = min(max(start_up_s, 0.0), batch.duration_s - rows_s)
    what = "the first batch" if batch.outlier == FIRST else f"a batch with {batch.outlier}"
    if batch.outlier == COLD:
        what = "one of the first batches"
    return ColdBatch(what, batch.duration_s, batch.rows, batch.tasks, rows_s, start_up_s)


def warm_duration_s(batch: BatchMeasurement) -> float:
    """How long a batch took, without start-up where it is known to have had some."""
    cold = cold_batch(batch)
    return batch.duration_s if cold is None else cold.warm_s


class StartUpLateness:
    """Notices for how long the measured latency is that of rows that waited for a cold batch.

    These are the rows of the cold batch itself, and those that arrived meanwhile and are in the
    next one. Their latency says nothing about cores. A cold batch that would have been late on warm
    workers as well does not count, and neither does one whose successor takes as long again: that
    is an overload.
    """

    def __init__(self, target_s: float) -> None:
        self._target_s = target_s
        self._seen: dict[str, _Lateness] = {}

    def notice(self, measurement: Measurement) -> str | None:
        """Why this tick's latency says nothing about cores, in words; None if it does."""
        for segment in measurement.segments:
            for batch in segment.batches:
                self._ended(segment.name, batch)
        for name, one in list(self._seen.items()):
            if measurement.at_s > one.until_s:
                del self._seen[name]
        return next((one.words for one in self._seen.values()), None)

    def _ended(self, segment: str, batch: BatchMeasurement) -> None:
        before = self._seen.get(segment)
        cold = cold_batch(batch)
        if cold is not None and cold.warm_s <= self._target_s < cold.took_s:
            # Should the next batch take longer than this one did, it is no longer waited for.
            until_s = batch.ended_s + cold.took_s
            self._seen[segment] = _Lateness(cold.words, cold.took_s, until_s)
        elif before is not None and not before.followed:
            if batch.duration_s >= before.took_s:
                del self._seen[segment]
                return
            until_s = batch.ended_s + _WINDOW_S
            self._seen[segment] = _Lateness(before.words, before.took_s, until_s, followed=True)


@dataclass(frozen=True, slots=True)
class _Lateness:
    """A cold batch whose rows, or those that waited for it, are still in the latency."""

    words: str
    took_s: float
    until_s: float
    followed: bool = False
    """Whether the batch after it has ended."""
