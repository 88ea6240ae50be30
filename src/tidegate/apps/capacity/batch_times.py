"""The micro-batches of a pipeline behind a full source, one after the other, with their times."""

import time
from collections import deque
from dataclasses import dataclass

from tidegate.errors import TidegateError
from tidegate.pipelines.graph import MAIN
from tidegate.spark.measure.progress import BatchProgress
from tidegate.spark.measure.query_meter import QueryMeter
from tidegate.spark.run import Run

_LOOK_EVERY_S = 0.05


@dataclass(frozen=True, slots=True)
class TimedBatch:
    """A micro-batch that has ended."""

    rows: int
    """Rows from the source; those that a loop fed back are none."""
    seconds: float
    """From the end of the batch before: the source is full, so the next batch begins at once."""

    @property
    def rows_per_s(self) -> float:
        """Its throughput."""
        return self.rows / self.seconds


class TimedBatches:
    """Waits for the batches of a run that has one segment; the first one only begins the second."""

    def __init__(self, run: Run, patience_s: float) -> None:
        """`patience_s` is how long a batch may take at most."""
        self._run = run
        self._meter = QueryMeter(run.queries[MAIN])
        self._patience_s = patience_s
        self._waiting: deque[BatchProgress] = deque()
        self._ended_us: int | None = None

    def next(self) -> TimedBatch:
        """The next batch, when it has ended."""
        while True:
            batch = self._ended()
            before_us, self._ended_us = self._ended_us, batch.end_us
            if before_us is not None and batch.end_us > before_us:
                return TimedBatch(batch.rows - batch.channel_rows, (batch.end_us - before_us) / 1e6)

    def next_of(self, rows: int) -> TimedBatch:
        """The next batch with so many rows; those that were planned before are passed over."""
        while (batch := self.next()).rows != rows:
            pass
        return batch

    def _ended(self) -> BatchProgress:
        until = time.monotonic() + self._patience_s
        while not self._waiting:
            self._waiting.extend(self._meter.read())
            if self._waiting:
                break
            if self._run.awaitTermination(_LOOK_EVERY_S):
                raise TidegateError(f"'{self._run.name}' ended while it was measured")
            if time.monotonic() > until:
                raise TidegateError(
                    f"'{self._run.name}' has ended no micro-batch for {self._patience_s:g} s;"
                    " measure it with shorter ones"
                )
        return self._waiting.popleft()
