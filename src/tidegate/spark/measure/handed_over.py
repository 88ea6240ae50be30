"""Rows on their way from one segment to another: how fast they come, and how many wait.

A segment that reads a channel gets its rows when the writer's batch hands them over. So its arrival
rate and its backlog are known from the writer, long before its own batch has taken the rows.
"""

from collections.abc import Collection, Mapping, Sequence

from tidegate.control.learning.told_rate import ToldRate
from tidegate.pipelines.graph import Channel, Segment
from tidegate.spark.measure.segment_batches import FinishedBatch


class HandedOver:
    """Follows the channels of a pipeline from batch to batch."""

    def __init__(self, segments: Mapping[str, Segment]) -> None:
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

    def add(self, finished: Mapping[str, Sequence[FinishedBatch]]) -> None:
        """Add the batches that finished since the last call."""
        for name, batches in finished.items():
            for batch in batches:
                self._written(name, batch)
        for name, batches in finished.items():
            for batch in batches:
                self._taken(name, batch)

    def rates(self, interval_s: float, idle: Collection[str]) -> dict[str, float]:
        """Rows per second that channels brought to each segment during the tick.

        `idle` are the segments with nothing to do: nothing comes from them.
        """
        told = {
            channel: rate.tell(interval_s, quiet=self._writers[channel] in idle)
            for channel, rate in self._rates.items()
        }
        return {name: sum(told[c] for c in read) for name, read in self._reads.items() if read}

    def waiting(self, segment: str) -> int:
        """Rows that were handed over to a segment, and that none of its batches is done with."""
        return sum(sum(self._waiting[channel].values()) for channel in self._reads[segment])

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

    def _taken(self, segment: str, batch: FinishedBatch) -> None:
        channels, offsets = self._reads[segment], batch.progress.channel_offsets
        # Channels are the last of a query's sources.
        ends = [end for _, end in offsets[len(offsets) - len(channels) :]]
        for channel, end in zip(channels, ends, strict=False):
            waiting = self._waiting[channel]
            for batch_id in [number for number in waiting if number < end]:
                del waiting[batch_id]
