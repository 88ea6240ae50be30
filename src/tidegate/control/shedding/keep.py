"""How many of its sources' rows a micro-batch keeps, computed alike on Spark and in the simulator.

A decision gives a fraction, fractions for single classes, and the span of arrivals that they were
planned for. A batch that starts later than planned has more rows. It keeps the planned number of
rows, not the planned fraction, or it would overrun and delay the next batch in turn.
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
    """The fraction was planned for a batch whose rows arrive over this time; None: for any."""

    def of(self, classes: tuple[str, ...]) -> tuple[float, ...]:
        """The fraction for each class of a source; one fraction for a source without classes."""
        return tuple(self.by_class.get(name, self.fraction) for name in classes) or (self.fraction,)

    def decided(self, decision: Decision) -> "Keep":
        """The keep that is in force after a decision."""
        if decision.keep is None and not decision.keep_by_class:
            return self
        fraction = self.fraction if decision.keep is None else decision.keep
        return Keep(fraction, decision.keep_by_class, decision.keep_span_s)

    def promised(self, worths: Mapping[str, Worth]) -> "Keep":
        """This keep, with no class below its promised floor and without undeclared classes.

        Floors must hold whoever sets the keep, so they are applied here and not by a policy.
        """
        given = {name: share for name, share in self.by_class.items() if name in worths}
        for name, worth in worths.items():
            if given.get(name, self.fraction) < worth.floor:
                given[name] = worth.floor
        return replace(self, by_class=given)

    def of_batch(
        self, gathered_s: float, offered: Mapping[str, float], worths: Mapping[str, Worth]
    ) -> "Keep":
        """The keep of a batch whose rows arrived over `gathered_s`; `offered` has rows per class.

        The batch keeps the planned number of rows in total. The least important classes make up for
        the difference.
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
    """The share to keep of a batch whose rows arrived over `gathered_s` instead of `span_s`.

    The number of rows stays as planned. With an unchanged share, a late batch would keep more rows
    than its target allows and make the next one late, and so on by the ratio rho, so that one late
    batch would count 1 / (1 - rho) times.
    """
    if span_s is None or keep >= 1.0 or gathered_s <= 0.0:
        return keep
    return min(max(keep * span_s / gathered_s, min(keep, LEAST_KEEP)), 1.0)
