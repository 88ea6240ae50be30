"""The thread of a control loop: each tick, it measures, decides, acts and records.

Subclasses say how to measure and how to act.
"""

import math
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from tidegate.control.claim import Claim
from tidegate.control.controller import Controller
from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.recording import RecordWriter
from tidegate.spark.loop.negotiate import Negotiator

_REMEMBERED = 7200


class Ticker(ABC):
    """Runs a controller once a tick in its own thread, and keeps a record of each tick."""

    def __init__(
        self,
        controller: Controller,
        negotiator: Negotiator,
        *,
        tick_s: float,
        writer: RecordWriter | None,
    ) -> None:
        self.controller = controller
        self.negotiator = negotiator
        self.records: deque[Record] = deque(maxlen=_REMEMBERED)
        self.watchers: list[Callable[[Record], None]] = []
        """Functions called with every record, in the loop's thread."""
        self.failure: BaseException | None = None
        self._tick_s = tick_s
        self._writer = writer
        self._ended = threading.Event()
        self._woken = threading.Event()
        self._done = threading.Condition()
        self._looked_s = -math.inf
        """The start of the last completed tick, by the monotonic clock."""
        self._thread = threading.Thread(target=self._ticks, name="tidegate-loop", daemon=True)

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether the controlled queries are running; if not, an error in a tick is ignored."""

    @abstractmethod
    def measure(self, now_s: float) -> Measurement:
        """Measure the tick that ends now."""

    @abstractmethod
    def act(self, decision: Decision) -> None:
        """Apply a decision."""

    def share_of(self, claim: Claim) -> int | None:
        """The cores that other pipelines leave to this one; None if it shares with nobody."""
        return None

    @property
    def over(self) -> bool:
        """Whether the controlled queries have ended for good, so that the loop can end."""
        return False

    def start(self) -> None:
        """Start the thread, which ticks until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the current tick, then end the thread and close the record file."""
        self._ended.set()
        self._woken.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
        if self._writer is not None:
            self._writer.close()

    def hurry(self, patience_s: float) -> bool:
        """Tick now, before the next one is due, and wait for it; False if that takes too long."""
        asked_s = time.monotonic()
        self._woken.set()
        with self._done:
            return self._done.wait_for(
                lambda: self._looked_s >= asked_s or not self._thread.is_alive(), patience_s
            )

    def _ticks(self) -> None:
        due_s = time.monotonic() + self._tick_s
        while True:
            self._woken.wait(max(0.0, due_s - time.monotonic()))
            if self._ended.is_set():
                return
            self._woken.clear()
            begun_s = time.monotonic()
            due_s = (
                max(due_s + self._tick_s, begun_s) if begun_s >= due_s else begun_s + self._tick_s
            )
            if self.over:
                return
            try:
                self.tick(time.time())
            except Exception as error:
                if not self.alive:
                    return
                self.failure = error
                raise

    def tick(self, now_s: float) -> Record:
        """Run one tick: measure, decide, act, record."""
        begun_s = time.monotonic()
        record = self.controller.tick(self.measure(now_s), self.share_of)
        notes = self.notes()
        if notes:
            notes = (*record.decision.notes, *notes)
            record = replace(record, decision=replace(record.decision, notes=notes))
        if record.acted:
            self.act(record.decision)
        with self._done:
            self._looked_s = begun_s
            self._done.notify_all()
        self.negotiator.let_go()
        self.records.append(record)
        if self._writer is not None:
            self._writer.write(record)
        for watcher in list(self.watchers):
            watcher(record)
        return record

    def notes(self) -> tuple[str, ...]:
        """Notes for the record about this cluster, such as executors that are overdue."""
        overdue = self.negotiator.overdue()
        return () if overdue is None else (overdue,)
