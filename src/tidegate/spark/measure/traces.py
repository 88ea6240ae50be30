"""The sojourns of a pipeline on Spark: of each segment, and of inputs until all about them is done.

In a pipeline without channels, all rows of a batch are done when it ends, and the arrival stamps of
its first operators tell everything. Where rows go on through channels, the inputs of a sample are
followed by their traces.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tidegate.control.learning.sojourn import BatchStamps, SojournWindow, merged
from tidegate.control.learning.traces import (
    NO_IDS,
    Ids,
    TracedBatch,
    TracedInputs,
    weighted_stamps,
)
from tidegate.control.measurement import Latency
from tidegate.pipelines.graph import Channel, Keyed, Map, Segment
from tidegate.pipelines.walks import timed_source
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.measure.segment_batches import FinishedBatch


class SojournMeter:
    """Sojourns over the last seconds, from finished batches."""

    def __init__(
        self, segments: Mapping[str, Segment], traced: frozenset[str], window_s: float
    ) -> None:
        self._segments = segments
        self.whole = SojournWindow(window_s)
        """Inputs until all rows derived from them are done."""
        self._parts = {name: SojournWindow(window_s) for name in segments}
        writers = {w.channel.name: name for name, s in segments.items() for w in s.writes}
        self.followed = TracedInputs(writers) if writers else None
        """The traced inputs in flight; None in a pipeline without channels."""
        self._channels = {
            name: [node.name for node in segment.reads if isinstance(node, Channel)]
            for name, segment in segments.items()
        }
        self._followed_readers = {
            name: followed_readers(segment, traced) for name, segment in segments.items()
        }

    def add(self, finished: Mapping[str, Sequence[FinishedBatch]], now_us: int) -> None:
        """Add the batches that finished since the last call."""
        if self.followed is None:
            for name, batches in finished.items():
                for batch in batches:
                    if batch.kept.stamps.rows:
                        self.whole.add(batch.kept)
                        if len(self._segments) > 1:
                            self._parts[name].add(batch.kept)
            return
        told = [self._told(name, batch) for name, batches in finished.items() for batch in batches]
        for settled in self.followed.add(told, now_us):
            for done in settled.done:
                self.whole.add(done)
            if settled.waited is not None:
                self._parts[settled.segment].add(settled.waited)

    def latency(self, now_us: int) -> Latency | None:
        """The sojourn of inputs that were done within the window."""
        return self.whole.latency(now_us)

    def of_segment(self, name: str, whole: Latency | None, now_us: int) -> Latency | None:
        """The time that rows spent in one segment, from their arrival there to their batch's end.

        `whole` is the sojourn of inputs, which is the same where there is one segment.
        """
        return whole if len(self._segments) == 1 else self._parts[name].latency(now_us)

    def _told(self, name: str, batch: FinishedBatch) -> TracedBatch:
        """A finished batch as the followed inputs see it; its own arrivals are noted on the way."""
        result, end_us = batch.result, batch.progress.end_us
        born = _born(result)
        arrived = batch.kept
        if not arrived.stamps.rows and len(born):
            # No operator reads the source before the channel, so only traces tell the arrivals.
            arrived = BatchStamps(weighted_stamps(born), end_us)
        if arrived.stamps.rows:
            self._parts[name].add(arrived)
        alone = _stamps_besides(result, self._followed_readers[name], end_us)
        if alone is not None:
            self.whole.add(alone)
        offsets = batch.progress.channel_offsets
        channels = self._channels[name]
        # Channels are the last of a query's sources (`Segment.reads`).
        taken = dict(zip(channels, offsets[len(offsets) - len(channels) :], strict=False))
        traces = {channel: result.traces.get(channel, NO_IDS) for channel in result.written}
        return TracedBatch(name, result.plan.batch_id, end_us, born, taken, traces, result.written)


def followed_readers(segment: Segment, traced: frozenset[str]) -> frozenset[str]:
    """The operators that note the arrivals of a source whose inputs are followed by traces."""
    found = set()
    for node in segment.nodes:
        if isinstance(node, Map | Keyed):
            source = timed_source(segment, node)
            if source is not None and source.name in traced:
                found.add(node.name)
    return frozenset(found)


def _born(result: BatchResult) -> Ids:
    """The traces of inputs that entered with a batch."""
    told = [report.born for report in result.reports if report.born is not None]
    return np.unique(np.concatenate(told)) if told else NO_IDS


def _stamps_besides(
    result: BatchResult, followed: frozenset[str], end_us: int
) -> BatchStamps | None:
    """The arrivals of rows that are done with the batch, since no channel takes them further."""
    stamps = [
        r.stamps for r in result.reports if r.stamps is not None and r.operator not in followed
    ]
    return BatchStamps(merged(stamps), end_us) if any(part.rows for part in stamps) else None
