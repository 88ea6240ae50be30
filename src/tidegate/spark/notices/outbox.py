"""Hands things to a receiver that may be slow or hang, in a thread of its own.

Who puts something in never waits and never fails. What a receiver cannot take in time is dropped,
and that is logged once, until it works again.
"""

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from tidegate.logs import PipelineLogger, reason

T = TypeVar("T")

ROOM = 64
"""So many things wait at most."""


class Pause(Protocol):
    """Waits between two tries."""

    def __call__(self, seconds: float, /) -> bool:
        """Wait so long; True if it was cut short, because the outbox is being closed."""
        ...


class Outbox(Generic[T]):
    """A bounded queue and the thread that empties it, which begins with the first thing put in.

    `send` gets each thing, and a function to wait with between tries. It raises what failed.
    """

    def __init__(
        self, receiver: str, send: Callable[[T, Pause], None], log: PipelineLogger
    ) -> None:
        self._receiver = receiver
        self._send = send
        self._log = log
        self._waiting: queue.Queue[T | None] = queue.Queue(ROOM)
        self._closing = threading.Event()
        self._failed = 0
        """How many things in a row were not delivered."""
        self._thread: threading.Thread | None = None

    def put(self, thing: T) -> None:
        """Put something in; if there is no room for it, it is dropped."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="tidegate-notices", daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait(thing)
        except queue.Full:
            self._not_delivered(f"it has not taken any of the last {ROOM} in time")

    def close(self, patience_s: float) -> None:
        """Deliver what waits, within so many seconds; the rest is dropped."""
        if self._thread is None:
            return
        self._closing.set()
        with suppress(queue.Full):  # then it need not be woken
            self._waiting.put_nowait(None)
        if self._thread is not threading.current_thread():  # a receiver may end the run itself
            self._thread.join(patience_s)

    def _work(self) -> None:
        while not (self._closing.is_set() and self._waiting.empty()):
            thing = self._waiting.get()
            if thing is None:
                return
            try:
                self._send(thing, self._closing.wait)
            except BaseException as error:  # a user's function may even call sys.exit
                self._not_delivered(_said(error))
                continue
            if self._failed:
                self._log.info("%s works again; it missed %d notices", self._receiver, self._failed)
                self._failed = 0

    def _not_delivered(self, why: str) -> None:
        self._failed += 1
        if self._failed == 1:
            self._log.warning(
                "%s did not take a notice: %s. Further failures are not logged; the log has all"
                " notices",
                self._receiver,
                why,
            )


class NotDelivered(Exception):
    """A receiver failed, in words that may be logged."""


def _said(error: BaseException) -> str:
    return str(error) if isinstance(error, NotDelivered) else reason(error)
