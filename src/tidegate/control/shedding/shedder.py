"""The interface of a shedder: it sees the next round and returns the share of rows to keep.

Rebalancing, tasks and cores come first; a shedder covers the overload that they leave. It is called
once a tick, in time order. It keeps state, but reads no clock and calls neither Spark nor the
simulator, so the same object sheds on both. A round is one micro-batch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tidegate.errors import AskedWrongly

LEAST_KEEP = 0.001
"""The least share that is kept: an empty round has no latency to control by."""
_HALVINGS = 24


class Outlook(Protocol):
    """A prediction of the next round."""

    @property
    def offered_rows(self) -> float:
        """N(t): the backlog when the round begins, in rows."""
        ...

    def latency_s(self, keep: float) -> float:
        """The model's mean latency if this share is kept; it grows with the share."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a shedder knows when it decides on the next round."""

    at_s: float
    outlook: Outlook
    latency_s: float | None
    """l(t - d): mean latency of the results since the last look; None: there were none."""
    delay_s: float
    """The loop's measured delay: the time since the keep of the newest results was decided."""
    waits_since_s: float | None = None
    """When the rows of the newest results began to arrive: at the start of the round before theirs.
    None: no earlier than `delay_s` ago."""


class Shedder(Protocol):
    """Called once per look."""

    @property
    def name(self) -> str:
        """The name by which a user selects it."""
        ...

    def keep(self, look: Look) -> float:
        """The share of the next round's rows to keep, from `LEAST_KEEP` to 1."""
        ...


def check_target(target_s: float) -> float:
    """The target, if it is a positive duration; an error otherwise."""
    if not 0.0 < target_s < float("inf"):
        raise AskedWrongly(f"the latency target must be a positive duration, not {target_s} s")
    return target_s


def most_keep(latency_s: Callable[[float], float], aim_s: float) -> float:
    """The largest share whose latency is within the aim (eq. 2 for n / N, by bisection)."""
    if latency_s(1.0) <= aim_s:
        return 1.0
    low, high = LEAST_KEEP, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if latency_s(middle) <= aim_s:
            low = middle
        else:
            high = middle
    return low
