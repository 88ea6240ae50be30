"""A pipeline that runs as a job: it processes what its sources have, and ends.

Spark ends the queries that read sources. A query behind a cut cannot know when its writer is done,
so it runs on until the sources' queries have ended and every channel is read to its end. What a
query has read stands in the logs that Spark keeps in the checkpoint: the offsets of a batch, and
its commit, which comes last.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tidegate.pipelines.graph import Channel, Segment, Source
from tidegate.spark.batch.channel import Log
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.state.files import Durable, Missing


@dataclass(frozen=True, slots=True)
class Job:
    """Says when a job is done."""

    sources: frozenset[str]
    """The segments that read sources, whose queries end by themselves."""
    readers: Mapping[str, tuple[str, ...]]
    """For each other segment the channels that it reads, in the order of its query's sources."""
    checkpoint: Checkpoint

    @classmethod
    def of(cls, segments: Collection[Segment], checkpoint: Checkpoint) -> "Job":
        """The job of a pipeline with these segments."""
        sources = [s.name for s in segments if any(isinstance(n, Source) for n in s.reads)]
        readers = {
            segment.name: tuple(n.name for n in segment.reads if isinstance(n, Channel))
            for segment in segments
            if segment.name not in sources
        }
        return cls(frozenset(sources), readers, checkpoint)

    def broken(self, ended: Collection[str]) -> bool:
        """Whether a query has ended that does not end by itself."""
        return not self.sources.issuperset(ended)

    def done(self, ended: Collection[str]) -> bool:
        """Whether the queries of the sources have ended, and all that they wrote is processed.

        While a segment reads its last rows, it may still write others. So the channels are read to
        their ends only if none has grown while all of them were looked at.
        """
        if not self.sources.issubset(ended):
            return False
        before = self._lengths()
        read = all(self._read_to_the_end(name, before) for name in self.readers)
        return read and self._lengths() == before

    def _lengths(self) -> dict[str, int]:
        names = [name for channels in self.readers.values() for name in channels]
        return {name: Log(self.checkpoint.channel(name)).length() for name in names}

    def _read_to_the_end(self, segment: str, lengths: Mapping[str, int]) -> bool:
        channels = self.readers[segment]
        wanted = [lengths[name] for name in channels]
        if not any(wanted):
            return True
        ends = committed_ends(self.checkpoint.segment(segment).below("spark"))
        return len(ends) == len(wanted) and all(
            end >= length for end, length in zip(ends, wanted, strict=True)
        )


def committed_ends(spark: Durable) -> list[int]:
    """Where the last committed batch of a query ended in each of the channels that it reads."""
    listed = [int(name) for name in spark.below("commits").names() if name.isdigit()]
    if not listed:
        return []
    try:
        lines = spark.below("offsets").read(str(max(listed))).decode().splitlines()
    except Missing:  # Spark has removed it meanwhile, after a newer one
        return []
    ends = []
    for line in lines:
        offset = json.loads(line) if line.startswith("{") else None
        if line == "-":
            ends.append(0)
        elif isinstance(offset, dict) and set(offset) == {"batches"}:
            ends.append(int(offset["batches"]))
    return ends
