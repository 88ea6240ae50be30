"""How long the loop waits for others: for a cluster manager's answer, and for a batch boundary."""

import math
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from tidegate.errors import TidegateError

T = TypeVar("T")

ANSWER_S = 5.0
"""How long a call to the cluster manager may take before we go on without its answer."""


class NoAnswer(TidegateError):
    """A call did not return in time."""


class Answered:
    """Makes calls that may hang, one at a time, and waits for each only a bounded time.

    A call that hangs cannot be ended. It goes on in a thread of its own, and until it returns,
    further calls fail at once instead of piling up behind it.
    """

    def __init__(
        self, what: str, *, patience_s: float = ANSWER_S, hint: str = "is the master up?"
    ) -> None:
        self._what = what
        self._hint = hint
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
        return NoAnswer(f"{self._what} has had no answer for {waited_s:.0f} s; {self._hint}")


FIRST_PATIENCE_S = 2.0
"""How long the first try waits for a batch boundary."""
LONGEST_PATIENCE_S = 180.0
"""The longest that a try waits. Two queries that run batches of a minute have met by then."""
_GROWTH = 3.0
_REST = 4.0
"""After a try that failed, the next one waits for so many times as long as the try took. Tries
therefore hold up no query for more than a fifth of the time."""


class Patience:
    """How long to wait for a batch boundary: longer after each try that failed, and ever rarer.

    Long batches that overlap rarely leave a short gap. Trying again and again for two seconds would
    never find one, and would hold up some batch each time.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.patience_s = FIRST_PATIENCE_S
        """How long the next try waits."""
        self._due_s = -math.inf

    @property
    def due(self) -> bool:
        """Whether it is time for the next try."""
        return self._clock() >= self._due_s

    def failed(self) -> None:
        """Note a try that did not succeed."""
        self._due_s = self._clock() + _REST * self.patience_s
        self.patience_s = min(_GROWTH * self.patience_s, LONGEST_PATIENCE_S)

    def reset(self) -> None:
        """Begin anew: the last try succeeded, or nothing is waited for any more."""
        self.patience_s = FIRST_PATIENCE_S
        self._due_s = -math.inf
