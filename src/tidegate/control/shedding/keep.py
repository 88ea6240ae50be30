"""What a micro-batch keeps of its sources' rows: the same arithmetic on Spark and in the simulator.

A decision says a fraction, fractions of single classes, and the span of arrivals that it was meant
for. A batch that took longer to come has more rows than was foreseen. It keeps as many rows as were
meant, not as large a share, or it would overrun and delay the next one in turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tidegate.control.decision import Decision
from tidegate.control.shedding.classes import Worth, keep_by_class
from tidegate.control.shedding.shedder import LEAST_KEEP


@dataclass(frozen=True, slots=True)
class Keep:
    """How much of the sources' rows a micro-batch keeps; the rest is shed."""

    fraction: float = 1.0
    by_class: Mapping[str, float] = field(default_factory=dict)
    """Classes with a fraction of their own; all others follow `fraction`."""
    span_s: float | None = None
    """The fraction is meant for a batch whose rows arrived over so many seconds; None: for any."""

    def of(self, classes: tuple[str, ...]) -> tuple[float, ...]:
        """The fraction of each class of a source; a single one for a source without classes."""
        return tuple(self.by_class.get(name, self.fraction) for name in classes) or (self.fraction,)

    def decided(self, decision: Decision) -> "Keep":
        """The keep that a decision leaves in force."""
        if decision.keep is None and not decision.keep_by_class:
            return self
        fraction = self.fraction if decision.keep is None else decision.keep
        return Keep(fraction, decision.keep_by_class, decision.keep_span_s)

    def promised(self, worths: Mapping[str, Worth]) -> "Keep":
        """With no class below the floor it was promised; classes that nobody declared are left out.

        Floors hold whoever asks, so they are applied here and not left to a policy.
        """
        given = {name: share for name, share in self.by_class.items() if name in worths}
        for name, worth in worths.items():
            if given.get(name, self.fraction) < worth.floor:
                given[name] = worth.floor
        return replace(self, by_class=given)

    def of_batch(
        self, gathered_s: float, offered: Mapping[str, float], worths: Mapping[str, Worth]
    ) -> "Keep":
        """What a batch keeps whose rows arrived over `gathered_s`; `offered` has rows per class.

        As many rows in all as were meant: the least important classes make up for the difference.
        """
        adapted = keep_over(self.fraction, self.span_s, gathered_s)
        if adapted == self.fraction or not self.by_class:
            return Keep(adapted, self.by_class)
        shares = keep_by_class(
            adapted, {name: rows for name, rows in offered.items() if name in self.by_class}, worths
        )
        return Keep(
            adapted,
            {name: max(shares.get(name, adapted), worths[name].floor) for name in self.by_class},
        )


KEEP_ALL = Keep()


def keep_over(keep: float, span_s: float | None, gathered_s: float) -> float:
    """The share to keep of a batch whose rows arrived over another time than was foreseen.

    It stands for as many rows as were meant. With the share itself, a late batch would have more
    rows than its target allows, the next one would be late because of it, and so on with the ratio
    rho, so that one late batch would count 1 / (1 - rho) times.
    """
    if span_s is None or keep >= 1.0 or gathered_s <= 0.0:
        return keep
    return min(max(keep * span_s / gathered_s, min(keep, LEAST_KEEP)), 1.0)
