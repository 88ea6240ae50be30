"""The lag of one query, from the offsets in Spark's progress reports."""

from collections.abc import Callable

from tidegate.control.lag import Lag, PartitionLag
from tidegate.control.sources.stuck_partitions import StuckPartitions
from tidegate.spark.measure.progress import BatchProgress, PartitionOffsets
from tidegate.spark.measure.read_limits import NO_LIMITS, ReadLimits

_Place = tuple[int, str, int]


class LagMeter:
    """Sees every batch of a query once, oldest first; `tell` is called once a tick.

    `limits` are read once, with the first batch: before it, Spark may not have planned the query.
    """

    def __init__(self, limits: Callable[[], ReadLimits] = lambda: NO_LIMITS) -> None:
        self._limits_of = limits
        self._limits: ReadLimits | None = None
        self._newest: dict[_Place, PartitionOffsets] = {}
        self._taken: dict[_Place, int] = {}
        self._arrived: dict[_Place, int] = {}
        self._first = True
        self._behind = 0
        """Rows that the newest batch left."""
        self._batches = 0
        """Batches since the last tick."""
        self._stuck = StuckPartitions()
        self._lag: Lag | None = None

    def add(self, batch: BatchProgress) -> float:
        """Add a batch; return how many rows arrived between the plan of the one before and its own.

        By the growth of the newest offsets, whatever part of it the batch took. Where a topic has
        offsets without rows (compaction, transactions), by the share that had one in this batch.
        Without offsets it is what the batch took, and what it left beyond what was left before.
        What the first batch found was there before.
        """
        if self._limits is None:
            self._limits = self._limits_of()
        first, self._first = self._first, False
        self._batches += 1
        present = {(one.source, one.topic, one.partition): one for one in batch.partitions}
        before, self._newest = self._newest, present or self._newest
        left, self._behind = batch.behind_rows - self._behind, batch.behind_rows
        if not present:
            return 0.0 if first else max(float(batch.rows + left), 0.0)
        grown = taken = 0
        for place, one in present.items():
            # A partition that is new has arrived with all that it holds.
            known = before[place].latest if place in before else 0
            more = max(one.latest - known, 0) if before else 0
            self._arrived[place] = self._arrived.get(place, 0) + more
            self._taken[place] = self._taken.get(place, 0) + one.taken
            grown, taken = grown + more, taken + one.taken
        return grown * (batch.rows / taken if 0 < batch.rows < taken else 1.0)

    def tell(self, at_s: float, rate: float, age_s: float | None = None) -> Lag | None:
        """The lag as of the newest batch; None where no source tells, and no limit is known.

        `age_s` is how old the newest row was that the newest batch took, where rows have stamps.
        """
        limits = self._limits or NO_LIMITS
        if not self._newest and limits == NO_LIMITS:
            return None
        told = [
            PartitionLag(
                topic=one.topic,
                partition=one.partition,
                behind_rows=one.behind,
                taken_rows=self._taken.get(place, 0),
                arrived_rows=self._arrived.get(place, 0),
            )
            for place, one in self._newest.items()
        ]
        partitions = self._stuck.marked(told, self._batches, at_s)
        if not self._batches and self._lag is not None:
            age_s = self._lag.age_s
        self._taken, self._arrived, self._batches = {}, {}, 0
        behind = sum(one.behind_rows for one in partitions)
        seconds = behind / rate if rate > 0.0 else (None if behind else 0.0)
        self._lag = Lag(
            partitions=partitions,
            seconds=seconds if partitions else None,
            age_s=age_s,
            limit_rows=limits.rows,
            limit_files=limits.files,
            min_partitions=limits.min_partitions,
        )
        return self._lag
