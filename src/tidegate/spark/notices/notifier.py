"""Watches a control loop, and tells its receivers what begins and what ends.

The log has every notice. Webhooks and functions get theirs from threads of their own, so none of
them can hold up or fail the loop.
"""

import threading
from dataclasses import replace

from tidegate.control.control_failure import ControlFailure
from tidegate.control.notice import Notice
from tidegate.control.notices.detector import NoticeDetector
from tidegate.control.record import Record
from tidegate.logs import PipelineLogger
from tidegate.spark.notices.receivers import NotifySettings

LAST_S = 3.0
"""How long the end of a run waits for its last notices to be delivered."""


class Notifier:
    """The notices of one loop. Settings may change from any thread; the rest is the loop's."""

    def __init__(self, pipeline: str, settings: NotifySettings) -> None:
        self._pipeline = pipeline
        self._log = PipelineLogger("notices", pipeline)
        self._settings = settings
        self._detector = NoticeDetector(settings.after_s)
        self._outboxes = settings.outboxes(pipeline, self._log)
        self._unrecorded: tuple[Notice, ...] = ()
        """Notices since the last record, which no record has told yet."""
        self._lock = threading.Lock()

    def change(self, settings: NotifySettings) -> None:
        """Go on with other receivers, or another patience; what has begun stays so."""
        with self._lock:
            if settings == self._settings:
                return
            before, self._settings = self._settings, settings
            self._detector.missed_after(settings.after_s)
            if (settings.webhooks, settings.functions) == (before.webhooks, before.functions):
                return
            old, self._outboxes = self._outboxes, settings.outboxes(self._pipeline, self._log)
        for outbox in old:
            outbox.close(0.0)

    def observed(self, record: Record) -> Record:
        """Tell what begins or ends with a tick. Returns the record with it, in words as well."""
        with self._lock:
            found = self._detector.observe(record)
            told, self._unrecorded = (*self._unrecorded, *found), ()
            self._tell(found)
        if not told:
            return record
        said = record.decision.notes
        new = (one.what for one in told if not any(one.what in note for note in said))
        notes = (*said, *new)
        return replace(record, notices=told, decision=replace(record.decision, notes=notes))

    def failed(self, failure: ControlFailure, at_s: float, *, final: bool = False) -> None:
        """Tell of a tick that failed, if that is news."""
        with self._lock:
            found = self._detector.failed(failure, at_s, final=final)
            self._unrecorded += found
            self._tell(found)

    def over(self, at_s: float) -> None:
        """The queries have ended: end whatever has begun."""
        with self._lock:
            self._tell(self._detector.over(at_s))

    def close(self, at_s: float) -> None:
        """End whatever has begun, and wait a little for the last notices to be delivered."""
        self.over(at_s)
        with self._lock:
            outboxes, self._outboxes = self._outboxes, []
        for outbox in outboxes:
            outbox.close(LAST_S / len(outboxes))

    def _tell(self, notices: tuple[Notice, ...]) -> None:
        for one in notices:
            (self._log.info if one.ended else self._log.warning)("%s", one.what)
            for outbox in self._outboxes:
                outbox.put(one)
