"""The steps of a micro-batch, and the hook that is called after each of them."""

import time
from collections.abc import Callable
from enum import Enum
from typing import TypeAlias


class Step(Enum):
    """What a micro-batch has done so far, in the order that makes it exactly once.

    A crash after any step repeats the batch, and every step does again what it did
    (docs/exactly-once.md). A segment without channels, a ledger or keyed operators still passes
    through all steps; there is then nothing to do in some.
    """

    PREVIEWED = "previewed"
    """Rows were counted by shard, where that was asked for. Nothing is written yet."""
    PLANNED = "planned"
    """The plan is written, or the plan of an earlier try was read."""
    COMPILED = "compiled"
    """The state of the batch before was looked up, and every operator has its DataFrame."""
    SINKS_WRITTEN = "sinks written"
    CHANNELS_WRITTEN = "channels written"
    """The files of channels are there; nobody reads them before they are handed over."""
    RAN = "ran"
    """Every task has reported, and its state file is written; no manifest names it yet."""
    HANDED_OVER = "handed over"
    """Channels show the batch to the segments that read them."""
    ENTERED = "entered"
    """The counts of rows offered and kept are in the ledger."""
    COMMITTED = "committed"
    """The manifest makes the new state current."""
    CLEANED = "cleaned"
    """Old versions are removed; the callback returns, and Spark commits the offsets."""


AfterStep: TypeAlias = Callable[[Step, int], None]
"""Called with a step and the batch id, right after the step was done."""


class Steps:
    """The steps of one micro-batch: how long each took, and whom to tell."""

    def __init__(self, batch_id: int, after_step: AfterStep | None) -> None:
        self.started_s = time.time()
        self.took_s: dict[Step, float] = {}
        self.batch_id = batch_id
        self._after_step = after_step
        self._last = time.perf_counter()

    def reached(self, step: Step) -> None:
        """This step is done; whatever the hook raises fails the batch here."""
        now = time.perf_counter()
        self.took_s[step] = now - self._last
        self._last = now
        if self._after_step is not None:
            self._after_step(step, self.batch_id)
