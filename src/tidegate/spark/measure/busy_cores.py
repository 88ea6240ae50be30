"""How many cores a pipeline keeps busy."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from tidegate.spark.measure.segment_batches import FinishedBatch


class BusyCores:
    """Cores at work in the last finished batches of each segment."""

    def __init__(self) -> None:
        self._of: dict[str, float] = {}

    def measure(
        self, finished: Mapping[str, Sequence[FinishedBatch]], idle: Collection[str]
    ) -> float | None:
        """Cores at work in all segments together; None before the first batch finished.

        Segments run side by side, so theirs add up; a segment that is `idle` uses none.
        """
        for name, batches in finished.items():
            spent_s = sum(batch.progress.duration_s for batch in batches)
            if spent_s > 0.0:
                busy_s = sum(r.busy_s for batch in batches for r in batch.result.reports)
                self._of[name] = busy_s / spent_s
        known = [0.0 if name in idle else self._of[name] for name in finished if name in self._of]
        return sum(known) if known else None


def active_tasks(session: SparkSession) -> int:
    """Tasks that run at this moment, on all executors.

    The scheduler is asked and not Spark's status store: that one writes at most ten times a second,
    so tasks that begin right after others have ended are not in it until they end themselves.
    """
    running: Any = session.sparkContext._jsc.sc().taskScheduler().runningTasksByExecutors()
    counts = running.valuesIterator()
    total = 0
    while counts.hasNext():
        total += int(counts.next())
    return total


class ExecutorTime:
    """Seconds that tasks have run on executors, by Spark's own count; call it once a tick."""

    def __init__(self, session: SparkSession) -> None:
        self._store: Any = session.sparkContext._jsc.sc().statusStore()
        self._last_ms: dict[str, int] = {}
        self._total_ms = 0

    def __call__(self) -> float:
        """In all since it was created, the work of executors that have gone included."""
        listed = self._store.executorList(True)
        for number in range(listed.size()):
            entry = listed.apply(number)
            name, spent_ms = entry.id(), entry.totalDuration()
            self._total_ms += spent_ms - self._last_ms.get(name, 0)
            self._last_ms[name] = spent_ms
        return self._total_ms / 1000.0


def up_since_s(session: SparkSession) -> float:
    """When the newest executor came, in seconds since the epoch: since then, cores are the same."""
    listed: Any = session.sparkContext._jsc.sc().statusStore().executorList(True)
    entries = [listed.apply(number) for number in range(listed.size())]
    return max((entry.addTime().getTime() / 1000.0 for entry in entries), default=math.inf)
