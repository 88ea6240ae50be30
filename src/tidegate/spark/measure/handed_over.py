"""Rows on their way from one segment to another: how fast they come, and how many wait.

A segment that reads a channel gets its rows when the writer's batch hands them over. So its arrival
rate and its backlog are known from the writer, long before its own batch has taken the rows.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from tidegate.control.learning.told_rate import ToldRate
from tidegate.pipelines.graph import Channel, Segment
from tidegate.spark.measure.progress import BatchProgress
from tidegate.spark.measure.segment_batches import FinishedBatch


class HandedOver:
    """Follows the channels of a pipeline from batch to batch."""

    def __init__(
        self,
        segments: Mapping[str, Segment],
        old: Mapping[str, Mapping[int, int]] | None = None,
    ) -> None:
        self._writers = {w.channel.name: name for name, s in segments.items() for w in s.writes}
        self._reads = {
            name: [node.name for node in segment.reads if isinstance(node, Channel)]
            for name, segment in segments.items()
        }
        self._rates = {channel: ToldRate() for channel in self._writers}
        self._until_s: dict[str, float] = {}
        """All that was handed over up to this time is known, for each channel."""
        self._waiting: dict[str, dict[int, int]] = {channel: {} for channel in self._writers}
        """Rows of the writer's batches that no batch of the reader has taken yet."""
        self._old = {channel: dict(rows) for channel, rows in (old or {}).items()}
        """Rows of the writer's batches from before the run, as far as they are known."""
        for channel, rows in self._old.items():
            self._waiting[channel].update(rows)

    def add(self, finished: Mapping[str, Sequence[FinishedBatch]]) -> None:
        """Add the batches that finished since the last call."""
        for name, batches in finished.items():
            for batch in batches:
                self._written(name, batch)
        for name, batches in finished.items():
            for batch in batches:
                self._taken(name, batch)

    def rates(self, interval_s: float, idle: Collection[str], now_s: float) -> dict[str, float]:
        """Rows per second that channels brought to each segment during the tick that ends now.

        `idle` are the segments with nothing to do: nothing comes from them.
        """
        told = {}
        for channel, rate in self._rates.items():
            quiet = self._writers[channel] in idle
            if quiet and channel in self._until_s:
                rate.nothing(now_s)
                self._until_s[channel] = max(self._until_s[channel], now_s)
            told[channel] = rate.tell(interval_s, quiet=quiet)
        return {name: sum(told[c] for c in read) for name, read in self._reads.items() if read}

    def waiting(self, segment: str) -> int:
        """Rows that were handed over to a segment, and that none of its batches is done with."""
        return sum(sum(self._waiting[channel].values()) for channel in self._reads[segment])

    def by_reader(self, finished: Sequence[FinishedBatch]) -> dict[str, int]:
        """Rows that some batches of a segment handed over, by the segment that reads them."""
        rows: dict[str, int] = {}
        for reader, channels in self._reads.items():
            for channel in channels:
                handed = sum(batch.result.written.get(channel, 0) for batch in finished)
                if handed:
                    rows[reader] = rows.get(reader, 0) + handed
        return rows

    def old_rows(self, segment: str, progress: BatchProgress) -> int:
        """Rows of a batch of a segment that were handed over to it before the run began."""
        return sum(
            sum(rows for number, rows in self._old[channel].items() if start <= number < end)
            for channel, (start, end) in self._offsets(segment, progress)
            if channel in self._old
        )

    def forget_times(self) -> None:
        """Forget when rows were handed over, because the wall clock was set back."""
        self._until_s.clear()
        for rate in self._rates.values():
            rate.forget_times()

    def _written(self, segment: str, batch: FinishedBatch) -> None:
        end_s = batch.progress.end_us / 1e6
        for channel, writer in self._writers.items():
            if writer != segment:
                continue
            rows = batch.result.written.get(channel, 0)
            since_s = self._until_s.get(channel, batch.began_s)
            self._rates[channel].add(rows, since_s, end_s)
            self._until_s[channel] = end_s
            if rows:
                self._waiting[channel][batch.result.plan.batch_id] = rows

    def _offsets(
        self, segment: str, progress: BatchProgress
    ) -> Iterable[tuple[str, tuple[int, int]]]:
        """For each channel that a batch read: the writer's batches that it took."""
        channels, offsets = self._reads[segment], progress.channel_offsets
        # Channels are the last of a query's sources.
        return zip(channels, offsets[len(offsets) - len(channels) :], strict=False)

    def _taken(self, segment: str, batch: FinishedBatch) -> None:
        for channel, (_, end) in self._offsets(segment, batch.progress):
            waiting = self._waiting[channel]
            for batch_id in [number for number in waiting if number < end]:
                del waiting[batch_id]
