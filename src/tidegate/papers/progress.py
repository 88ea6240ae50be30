"""How far an experiment of many runs has come, and how long it still takes."""

import time
from collections.abc import Callable

_TOO_FEW = 0.02
"""With a smaller share of the runs done, nobody knows how long the others take."""


class RunsLeft:
    """Says from time to time how many runs are done, and about how long the others take."""

    def __init__(
        self,
        say: Callable[[str], None],
        what: str,
        total: int,
        *,
        every_s: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._say, self._what, self._total, self._every_s = say, what, total, every_s
        self._clock = clock
        self._begun_s = self._said_s = clock()
        self._done = 0

    def one_more(self) -> None:
        """Another run is done."""
        self._done += 1
        now_s = self._clock()
        early = self._done < _TOO_FEW * self._total or now_s - self._said_s < self._every_s
        if early and self._done < self._total:
            return
        self._said_s = now_s
        took_s = now_s - self._begun_s
        if self._done == self._total:
            self._say(f"{self._what}: all {self._total} done in {in_words(took_s)}")
            return
        left_s = took_s / self._done * (self._total - self._done)
        self._say(f"{self._what}: {self._done} of {self._total}, about {in_words(left_s)} left")


def in_words(seconds: float) -> str:
    """A duration for a person who waits: seconds, or minutes from two on."""
    return f"{seconds / 60.0:.0f} min" if seconds >= 119.5 else f"{seconds:.0f} s"
