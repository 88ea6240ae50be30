"""How far a long piece of work is, and about how long it still takes.

Who works tells a `Progress` how much there is and which step begins; who shows it asks `how_far()`.
Weights of steps are in any unit: rounds, seconds of load, rows. Between two reports the clock
counts, so that a bar moves and the time left falls during a step that takes minutes.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

Item = TypeVar("Item")

_NEARLY = 0.95
"""By the clock alone, a step gets this far and no further."""
_TRUST = 0.1
"""What was expected beforehand counts as much as this share of the work, once some is done."""


@dataclass(frozen=True, slots=True)
class HowFar:
    """How far a piece of work is at one moment."""

    what: str
    """What is being done; empty if nothing was said."""
    elapsed_s: float
    """Since the work began, its preparation included."""
    share: float | None = None
    """The share of the work that is done; None while that cannot be told."""
    left_s: float | None = None
    """How long the rest takes; None while that cannot be told."""

    @property
    def words(self) -> str:
        """The share and the times, as a person who waits wants to know them."""
        if self.share is None:
            return f"running for {in_words(self.elapsed_s)}"
        done = f"{100.0 * self.share:.0f} % done"
        if self.left_s is None:
            return f"{done} after {in_words(self.elapsed_s)}"
        return f"{done}, about {in_words(self.left_s)} left"


class Progress:
    """What a piece of work tells of itself. It may be asked from another thread."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._begun_s = self._from_s = self._step_s = clock()
        """When it began, when the work behind its preparation did, and when the step did."""
        self._total: float | None = None
        self._takes_s: float | None = None
        self._done = 0.0
        """The weight of all steps that are over."""
        self._step = 0.0
        """The weight of the step that runs."""
        self._within: float | None = None
        """The share of that step that is done, where it was told."""
        self._what = ""
        self._follow: Callable[[], float] | None = None

    def expect(self, total: float, *, takes_s: float | None = None) -> None:
        """The work begins: so much in all, and so long where that is known beforehand.

        What came before was its preparation, which says nothing about how long the work takes.
        """
        with self._lock:
            begins = self._done == 0.0
            self._takes_s = takes_s if takes_s is not None or not begins else self._takes_s
            self._total, self._done, self._step = max(total, 1e-9), 0.0, 0.0
            self._within = self._follow = None
            self._from_s = self._step_s = self._clock()

    def step(self, what: str, weight: float = 1.0) -> None:
        """A step begins, and the one before it is over."""
        with self._lock:
            self._done += self._step
            self._step, self._within, self._what = weight, None, what
            self._step_s = self._clock()

    def each(self, items: Sequence[Item], words: Callable[[Item], str]) -> Iterator[Item]:
        """Go through the items: each of them is a step, and together they are the work."""
        self.expect(len(items))
        for item in items:
            self.step(words(item))
            yield item

    def within(self, share: float) -> None:
        """This share of the step is done."""
        self._within = min(max(share, 0.0), 1.0)

    def doing(self, what: str) -> None:
        """Say what is being done, without the beginning of a step."""
        self._what = what

    def reached(self, done: float, what: str | None = None, *, total: float | None = None) -> None:
        """So much of the total is done; the total may have become another one."""
        with self._lock:
            self._total = self._total if total is None else max(total, 1e-9)
            self._done, self._step, self._within = done, 0.0, None
            self._step_s = self._clock()
            self._what = self._what if what is None else what

    def follow(self, done: Callable[[], float]) -> None:
        """Ask this function how much of the total is done, whenever somebody wants to know."""
        self._follow = done

    def how_far(self) -> HowFar:
        """How far it is now."""
        with self._lock:
            now_s = self._clock()
            elapsed_s = now_s - self._begun_s
            if self._total is None:
                return HowFar(self._what, elapsed_s)
            if self._follow is not None:
                done, beyond_s = self._follow(), 0.0
                unit_s = self._unit_s(done, now_s - self._from_s)
            else:
                # Only what is over tells how long a unit takes; the running step does not yet.
                unit_s = self._unit_s(self._done, self._step_s - self._from_s)
                done, beyond_s = self._in_step(now_s, unit_s)
            share = min(max(done / self._total, 0.0), 1.0)
            if unit_s is None:
                return HowFar(self._what, elapsed_s, share if done > 0.0 else None)
            left_s = max(self._total - done, 0.0) * unit_s + beyond_s
            return HowFar(self._what, elapsed_s, share, left_s)

    def _unit_s(self, done: float, took_s: float) -> float | None:
        """How long a unit of work takes, by what is done and by what was expected."""
        assert self._total is not None
        if self._takes_s is None:
            return took_s / done if done > 0.0 else None
        trusted = _TRUST * self._total
        return (_TRUST * self._takes_s + took_s) / (trusted + done)

    def _in_step(self, now_s: float, unit_s: float | None) -> tuple[float, float]:
        """The work done with the part of the running step, and by how much that step is late."""
        spent_s = now_s - self._step_s
        if self._within is not None:
            return self._done + self._within * self._step, 0.0
        if self._step <= 0.0 or unit_s is None:
            return self._done, 0.0
        usual_s = unit_s * self._step
        expected_s = max(usual_s, spent_s / _NEARLY)
        part = self._step * spent_s / max(expected_s, 1e-9)
        left_s, usual_left_s = expected_s - spent_s, unit_s * (self._step - part)
        return self._done + part, left_s - usual_left_s


def in_words(seconds: float) -> str:
    """A duration for a person who waits: seconds, minutes from two on, hours from two on."""
    if seconds >= 7170.0:
        return f"{seconds / 3600.0:.1f} h"
    return f"{seconds / 60.0:.0f} min" if seconds >= 119.5 else f"{seconds:.0f} s"
