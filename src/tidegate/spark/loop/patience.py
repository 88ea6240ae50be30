"""How long the loop waits for others: for a cluster manager's answer, and for a batch boundary."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from tidegate.errors import TidegateError

T = TypeVar("T")

ANSWER_S = 5.0
"""How long a call to the cluster manager may take before we go on without its answer."""


class NoAnswer(TidegateError):
    """A call to the cluster manager did not return in time."""


class Answered:
    """Makes calls that may hang, one at a time, and waits for each only a bounded time.

    A call that hangs cannot be ended. It goes on in a thread of its own, and until it returns,
    further calls fail at once instead of piling up behind it.
    """

    def __init__(self, what: str, *, patience_s: float = ANSWER_S) -> None:
        self._what = what
        self._patience_s = patience_s
        self._pending: threading.Thread | None = None
        self._since_s = 0.0

    def call(self, function: Callable[[], T]) -> T:
        """The function's value. Raises its exception, or `NoAnswer` if it takes too long."""
        if self._pending is not None and self._pending.is_alive():
            raise self._no_answer()
        returned: list[T] = []
        raised: list[BaseException] = []

        def run() -> None:
            try:
                returned.append(function())
            except BaseException as error:
                raised.append(error)

        self._since_s = time.monotonic()
        self._pending = threading.Thread(target=run, name="tidegate-call", daemon=True)
        self._pending.start()
        self._pending.join(self._patience_s)
        if raised:
            raise raised[0]
        if not returned:
            raise self._no_answer()
        self._pending = None
        return returned[0]

    def _no_answer(self) -> NoAnswer:
        waited_s = time.monotonic() - self._since_s
        return NoAnswer(f"{self._what} has had no answer for {waited_s:.0f} s; is the master up?")
