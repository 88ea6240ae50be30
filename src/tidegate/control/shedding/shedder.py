"""What a shedder is told, and what it answers: the share of the rows to keep.

Rebalancing, tasks and cores come first; a shedder is asked about what they leave. It is asked again
and again, in time order; it remembers, but reads no clock and knows no body, so the same object
sheds in the simulator and on Spark.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tidegate.errors import AskedWrongly

LEAST_KEEP = 0.001
"""Never nothing: a round with no row tells nothing, and latency must be seen to be controlled."""
_HALVINGS = 24


class Outlook(Protocol):
    """What the next round will be like."""

    @property
    def offered_rows(self) -> float:
        """N(t): rows that wait when it begins."""
        ...

    def latency_s(self, keep: float) -> float:
        """The mean latency that this share leads to, by the model; grows with the share."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What is known when the next round is decided about."""

    at_s: float
    outlook: Outlook
    latency_s: float | None
    """l(t - d): mean latency of the results since the last look; None: there were none."""
    delay_s: float
    """The loop's delay as measured: since the keep of the newest results was decided."""
    waits_since_s: float | None = None
    """When the rows of the newest results began to wait: as the round before theirs did. None: no
    earlier than `delay_s` ago."""


class Shedder(Protocol):
    """Called once per look."""

    @property
    def name(self) -> str:
        """The name a person selects it by."""
        ...

    def keep(self, look: Look) -> float:
        """The share of the next round's rows to keep, from `LEAST_KEEP` to 1."""
        ...


def check_target(target_s: float) -> float:
    """The target, if it is one."""
    if not 0.0 < target_s < float("inf"):
        raise AskedWrongly(f"the latency target must be a positive duration, not {target_s} s")
    return target_s


def most_keep(latency_s: Callable[[float], float], aim_s: float) -> float:
    """The largest share whose latency is within the aim (eq. 2, solved for n / N), by halving."""
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
