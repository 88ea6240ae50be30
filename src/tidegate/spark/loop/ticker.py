"""The thread of a control loop: each tick, it measures, decides, acts and records.

Subclasses say how to measure and how to act. An error in a tick does not end the loop: the tick is
tried again, after a pause that doubles each time. Several failures in a row end shedding, because
rows must not be dropped on a decision that is out of date. Settings that are changed at run time
are checked in the thread that changes them, and taken over at the next tick.
"""

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from tidegate.control.assemble import continued
from tidegate.control.assembly import Assembly
from tidegate.control.claim import Claim
from tidegate.control.control_failure import ControlFailure
from tidegate.control.controller import Controller
from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.errors import AskedWrongly
from tidegate.logs import PipelineLogger, reason
from tidegate.recording import Recorder
from tidegate.spark.loop.approval import AskedUser
from tidegate.spark.loop.decision_log import DecisionLog
from tidegate.spark.loop.isolated import Isolated
from tidegate.spark.loop.kept_learning import KeptLearning
from tidegate.spark.loop.negotiate import Negotiator
from tidegate.spark.loop.settings import LoopSettings
from tidegate.spark.measure.memory import remembered_records
from tidegate.spark.notices.notifier import Notifier
from tidegate.spark.notices.receivers import NotifySettings
from tidegate.spark.state.files import Durable

FAILURES_TO_KEEP_ALL = 3
"""After this many failed ticks in a row, the last decision on shedding is too old to follow."""
_LAST_TICK_S = 15.0
"""How long the end of a run waits for the last tick."""
LONGEST_PAUSE_S = 30.0
"""The longest pause before a failed tick is tried again."""


class Ticker(ABC):
    """Runs a controller once a tick in its own thread, and keeps a record of each tick.

    What the controller has learned is kept at `place`, if there is one.
    """

    def __init__(
        self,
        controller: Controller,
        negotiator: Negotiator,
        *,
        name: str,
        tick_s: float,
        writer: Recorder | None,
        place: Durable | None = None,
        settings: LoopSettings | None = None,
    ) -> None:
        self.controller = controller
        self.negotiator = negotiator
        self.records = remembered_records()
        """The last records, oldest first; the oldest may lack what a record has per shard."""
        self.watchers: list[Callable[[Record], None]] = []
        """Functions called with every record, in the loop's thread. One that raises is called
        again with the next record."""
        self.failure_watchers: list[Callable[[ControlFailure], None]] = []
        """Functions called after every failed tick, in the loop's thread."""
        self.at_end: list[Callable[[], None]] = []
        """Functions called when the loop is stopped."""
        self.page: str | None = None
        """The address of the live page that shows it, if one does."""
        self.failure: BaseException | None = None
        """What ended the loop for good; an exception in a tick does not."""
        self.control_failure: ControlFailure | None = None
        """The failure that control has not recovered from; None while it works."""
        self._settings = settings
        """The options of the loop, those of a change that is not taken over yet included."""
        self._next: tuple[Assembly, Negotiator] | None = None
        """What the next tick takes over, because settings have changed."""
        self._updating = threading.Lock()
        """Held during an update. Its checks may take seconds, and no tick waits for them."""
        self._changing = threading.Lock()
        """Held while `_next` changes."""
        approve = None if settings is None else settings.given["approve"]
        self._approve = None if approve is None else AskedUser(approve)
        self._log = PipelineLogger("loop", name)
        self._notifier = Notifier(name, NotifySettings() if settings is None else settings.notify)
        self._notifying = Isolated("finding what to give notice of", self._log)
        self._decisions = DecisionLog(self._log)
        self._tick_s = tick_s
        self._writer = writer
        self._writing = Isolated("writing records", self._log)
        self._learning: KeptLearning | None = None
        if place is not None:
            self._learning = KeptLearning(place, controller, self._log)
            self._learning.recall(time.time())
        self._watching: dict[int, Isolated] = {}
        """The isolation of each watcher, by its identity."""
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

    def negotiator_for(self, assembly: Assembly, now: Negotiator) -> Negotiator:
        """The negotiator for changed settings; another one when a dry run ends."""
        return now

    def took_over(self, assembly: Assembly) -> None:
        """Go on with settings that have changed, in the thread that ticks."""
        self._log.debug("goes on with changed settings")

    def keep_all(self) -> bool:
        """End shedding, because control has failed for several ticks; False if it never sheds."""
        return False

    def share_of(self, claim: Claim) -> int | None:
        """The cores that other pipelines leave to this one; None if it shares with nobody."""
        return None

    @property
    def over(self) -> bool:
        """Whether the controlled queries have ended for good, so that the loop can end."""
        return False

    @property
    def ticks_here(self) -> bool:
        """Whether the calling thread is the one that ticks."""
        return self._thread is threading.current_thread()

    def change_settings(self, options: Mapping[str, Any]) -> None:
        """Change settings from the next tick on; what is wrong with them is raised here."""
        if self._settings is None:
            raise AskedWrongly("this loop was started without options; start it with a target")
        with self._updating:
            settings = self._settings.changed(options)
            if settings.assembly != self._settings.assembly:
                with self._changing:
                    now = self.negotiator if self._next is None else self._next[1]
                negotiator = self.negotiator_for(settings.assembly, now)
                with self._changing:
                    self._next = settings.assembly, negotiator
            self._settings = settings
            self._notifier.change(settings.notify)

    def _take_over(self) -> None:
        """Take over settings that have changed since the last tick."""
        with self._changing:
            if self._next is None:
                return
            (assembly, self.negotiator), self._next = self._next, None
        self.controller = continued(assembly, self.controller)
        if self._learning is not None:
            self._learning.controller = self.controller
        self.took_over(assembly)

    def start(self) -> None:
        """Start the thread, which ticks until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the current tick, then end the thread and close the record file."""
        self._ended.set()
        self._woken.set()
        if not self.ticks_here and self._thread.ident is not None:
            self._thread.join(_LAST_TICK_S)
            if self._thread.is_alive():
                self._log.warning(
                    "the last tick of the control loop hangs, in a watcher or in writing its "
                    "record; the pipeline ends without it"
                )
        self.negotiator.close()
        if self._writer is not None:
            self._writing.call(self._writer.close)
        if self._learning is not None and not self._thread.is_alive():
            self._learning.close()
        self._notifying.call(lambda: self._notifier.close(time.time()))
        while self.at_end:
            self._isolation(self.at_end[-1]).call(self.at_end.pop())

    def hurry(self, patience_s: float) -> bool:
        """Tick now, before the next one is due, and wait for it; False if that takes too long.

        While control fails, nobody waits for it.
        """
        if self.control_failure is not None:
            return False
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
            try:
                if self.over:
                    self._end_notices()
                    return
                self.tick(time.time())
            except Exception as error:
                if self._ended.is_set() or not self._alive():
                    self._end_notices()
                    return
                due_s = time.monotonic() + self._failed(error, time.time())
                self._looked(begun_s)
            except BaseException as error:
                self.failure = error
                self._log.error("the control loop ended: %s", reason(error))
                self._failed_for_good(ControlFailure(time.time(), 1, reason(error)))
                return

    def _failed_for_good(self, failure: ControlFailure) -> None:
        """Give notice that nothing controls the pipeline any more."""
        tell = partial(self._notifier.failed, failure, failure.since_s, final=True)
        self._notifying.call(tell)

    def _end_notices(self) -> None:
        """Tell that what had begun is over, because the queries are."""
        self._notifying.call(lambda: self._notifier.over(time.time()))

    def _alive(self) -> bool:
        """Whether the queries run; if even that cannot be told, the loop goes on trying."""
        try:
            return self.alive
        except Exception:
            return True

    def _failed(self, error: Exception, now_s: float) -> float:
        """Note a failed tick. Returns the time until it is tried again."""
        before = self.control_failure
        ticks = 1 if before is None else before.ticks + 1
        since_s = now_s if before is None else before.since_s
        keeps_all = before is not None and before.keeps_all
        if ticks >= FAILURES_TO_KEEP_ALL:
            # Every time: a tick may have shed again before it failed.
            try:
                keeps_all = self.keep_all()
            except Exception as other:
                self._log.warning("shedding could not be ended: %s", reason(other))
        failure = ControlFailure(since_s, ticks, reason(error), keeps_all)
        self.control_failure = failure
        pause_s = min(self._tick_s * 2.0 ** min(ticks - 1, 16), LONGEST_PAUSE_S)
        pause_s = max(pause_s, self._tick_s)
        self._log.warning("%s; the next try is in %.1f s", failure.words, pause_s)
        self._notifying.call(lambda: self._notifier.failed(failure, now_s))
        for watcher in list(self.failure_watchers):
            self._isolation(watcher).call(partial(watcher, failure))
        return pause_s

    def tick(self, now_s: float) -> Record:
        """Run one tick: measure, decide, act, record."""
        begun_s = time.monotonic()
        self._take_over()
        record = self.controller.tick(self.measure(now_s), self.share_of, self._approve)
        notes = self.notes()
        failure = self.control_failure
        if failure is not None:
            notes = (*notes, f"{failure.words}; it works again")
        if notes:
            notes = (*record.decision.notes, *notes)
            record = replace(record, decision=replace(record.decision, notes=notes))
        if record.acted:
            self._act(record)
        self._looked(begun_s)
        self.negotiator.let_go()
        self.control_failure = None
        self._decisions.write(record)
        record = self._with_notices(record)
        self.records.append(record)
        if self._writer is not None:
            self._writing.call(partial(self._writer.write, record))
        if self._learning is not None:
            self._learning.tick(record.measurement.at_s)
        for watcher in list(self.watchers):
            self._isolation(watcher).call(partial(watcher, record))
        return record

    def _with_notices(self, record: Record) -> Record:
        """The record with what begins or ends with it; receivers are told."""
        told = [record]
        self._notifying.call(lambda: told.append(self._notifier.observed(record)))
        return told[-1]

    def _act(self, record: Record) -> None:
        try:
            self.act(record.decision)
        except BaseException:
            if record.assembly is not None:  # this record is lost, and with it what it tells
                self.controller.tell_again()
            raise

    def _looked(self, begun_s: float) -> None:
        """Wake those who wait for a tick that began now or later."""
        with self._done:
            self._looked_s = begun_s
            self._done.notify_all()

    def _isolation(self, watcher: Callable[..., None]) -> Isolated:
        name = getattr(watcher, "__qualname__", type(watcher).__name__)
        return self._watching.setdefault(id(watcher), Isolated(f"the watcher {name}", self._log))

    def notes(self) -> tuple[str, ...]:
        """Notes for the record about what the controller cannot see."""
        return ()
