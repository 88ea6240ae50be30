"""Backpressure: a segment waits when the reader of its channel falls far behind.

Without it a fast segment fills the checkpoint's disk with rows that a slow one has not read. The
rows then wait in the source instead, where the control loop sees them as backlog.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from tidegate.pipelines.graph import Segment
from tidegate.spark.batch.channel import Log
from tidegate.spark.batch.checkpoint import Checkpoint

MOST_WAITING = 256
"""A segment waits while a channel that it writes holds more producer batches than this."""
_LOOK_EVERY = 16
_POLL_S = 0.2
_log = logging.getLogger("tidegate.batch")


@dataclass(frozen=True, slots=True)
class Backpressure:
    """The channels whose readers a segment waits for."""

    segment: str
    logs: dict[str, Log]
    pipeline: str = ""

    @classmethod
    def of(cls, segment: Segment, checkpoint: Checkpoint, pipeline: str) -> "Backpressure":
        """All channels that it writes, except loops: a segment cannot wait for itself."""
        names = [write.channel.name for write in segment.writes if not write.channel.loop]
        return cls(segment.name, {name: Log(checkpoint.channel(name)) for name in names}, pipeline)

    def wait(self, batch_id: int, given_up: Callable[[], bool]) -> None:
        """Return when no channel is too full, or when `given_up` says so.

        Looking at a channel costs a listing, so only every few batches do.
        """
        if batch_id % _LOOK_EVERY:
            return
        for name, log in self.logs.items():
            told = False
            while log.backlog() > MOST_WAITING and not given_up():
                if not told:
                    _log.warning(
                        "pipeline '%s': segment '%s' waits before batch %d: the reader of channel "
                        "'%s' is more than %d batches behind",
                        self.pipeline,
                        self.segment,
                        batch_id,
                        name,
                        MOST_WAITING,
                    )
                told = True
                time.sleep(_POLL_S)
