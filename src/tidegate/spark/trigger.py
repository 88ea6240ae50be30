"""When micro-batches begin, as the user says it: at an interval, one after the other, or as a job.

A job processes what is there when it starts, and ends.
"""

from dataclasses import dataclass
from typing import Any

from tidegate.errors import AskedWrongly
from tidegate.pipelines.graph import Channel, Graph, Source
from tidegate.units import parse_duration

AVAILABLE_NOW = "available now"
ONCE = "once"


@dataclass(frozen=True, slots=True)
class Trigger:
    """A checked trigger."""

    interval_ms: int | None = None
    """None: each micro-batch begins as soon as the last one ends."""
    job: str | None = None
    """AVAILABLE_NOW: all that is there, in as many micro-batches as the sources' limits make of it.
    ONCE: the same in one micro-batch. None: it runs until it is stopped."""

    @classmethod
    def of(cls, text: str | None) -> "Trigger":
        """Parse what is given as `trigger`; Spark's spelling `availableNow` is understood, too."""
        if text is None:
            return cls()
        words = text.replace(" ", "").lower()
        if words == "availablenow":
            return cls(job=AVAILABLE_NOW)
        if words == ONCE:
            return cls(job=ONCE)
        try:
            milliseconds = round(parse_duration(text) * 1e3)
        except AskedWrongly as error:
            raise AskedWrongly(
                f"trigger: {error}; or '{AVAILABLE_NOW}' or '{ONCE}' for a job that ends"
            ) from None
        if milliseconds < 1:
            raise AskedWrongly(
                f"trigger: '{text}' is shorter than a millisecond; give a longer one, or leave "
                "trigger out to start each micro-batch as soon as the last one ends"
            )
        return cls(milliseconds)

    @property
    def interval_s(self) -> float:
        """The interval in seconds; 0 without one."""
        return (self.interval_ms or 0) / 1e3

    def on(self, writer: Any, reads_sources: bool) -> Any:
        """The same writer of a stream with this trigger.

        In a job, only the queries that read sources end by themselves. One that reads channels
        goes on until it has read what the others write (`job.Job`).
        """
        if self.interval_ms is not None:
            return writer.trigger(processingTime=f"{self.interval_ms} milliseconds")
        if self.job is None or not reads_sources:
            return writer
        return writer.trigger(once=True) if self.job == ONCE else writer.trigger(availableNow=True)

    def check(self, graph: Graph) -> None:
        """Refuse a job of which nobody could say when it is done."""
        if self.job is None:
            return
        loops = [n.name for n in graph.nodes.values() if isinstance(n, Channel) and n.loop]
        if loops:
            raise AskedWrongly(
                f"trigger='{self.job}': the pipeline has the loop '{loops[0]}', and rows in a loop "
                "are read by the segment that reads the source, which would end before them; run "
                "it without this trigger and stop it"
            )
        for segment in graph.segments():
            kinds = {type(node) for node in segment.reads}
            if {Source, Channel} <= kinds:
                raise AskedWrongly(
                    f"trigger='{self.job}': the segment '{segment.name}' reads a source and a "
                    "channel, and would end before all rows of the channel are written; merge "
                    "before the cut, or leave the cut out"
                )
