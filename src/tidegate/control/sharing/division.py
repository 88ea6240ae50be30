"""The cores of one application, divided among its pipelines, each with a target of its own.

Every pipeline has its own control loop and sheds by its own target; what they share is the cores.
While there are enough, each may take what the others have not asked for. When there are not, they
are divided so that the pipeline that keeps the smallest share of its rows keeps as much as it can
(max-min). A tighter target leaves less of a core's time for rows, tau(T) = (1 - 1.5 a / T) k / w,
so it needs more cores for the same rows: the division follows the targets, and no pipeline pays for
another's. A division stays until another is clearly better.
"""

import heapq
from collections.abc import Mapping
from dataclasses import replace

from tidegate.control.claim import Claim

_BETTER = 1.1
"""A new division must give the worst-off pipeline so many times as much."""


class Sharing:
    """What each pipeline may have; every one tells its claim at each of its ticks."""

    def __init__(self, cores: int, unit: int = 1) -> None:
        self.cores = cores // unit * unit
        self._unit = unit
        """Cores come in multiples of this: an executor's."""
        self._claims: dict[str, Claim] = {}
        self._division: dict[str, int] = {}
        self._news = 0
        """Claims since it was last divided."""

    def share_of(self, name: str, claim: Claim) -> int | None:
        """Take in a pipeline's newest claim, and answer with its share."""
        self.tell(name, claim)
        return self.allowed(name)

    def tell(self, name: str, claim: Claim) -> None:
        """Take in a pipeline's newest claim; the first one joins it to the others."""
        self._claims[name] = claim
        self._news += 1
        # Once a round: the division is of all claims, each a tick old at most.
        if self._news >= len(self._claims) or name not in self._division:
            self._divide()

    def ask(self, name: str, cores: int) -> None:
        """It has asked for so many, after its claim: the others see it at once."""
        if name in self._claims:
            self._claims[name] = replace(self._claims[name], cores=cores)

    def leave(self, name: str) -> None:
        """It has ended: its cores are free."""
        self._claims.pop(name, None)
        self._division.pop(name, None)
        self._news = len(self._claims)

    def allowed(self, name: str) -> int | None:
        """The share of a pipeline: its part of the division, and whatever the others have left.

        None when it is alone, and shares with nobody.
        """
        if len(self._claims) < 2 or name not in self._claims:
            return None
        others = sum(claim.cores for other, claim in self._claims.items() if other != name)
        return max(self._division[name], self.cores - others)

    def _divide(self) -> None:
        self._news = 0
        new = divided(self._claims, self.cores, self._unit)
        same = self._division.keys() == self._claims.keys()
        if not same or better(self._claims, new, self._division):
            self._division = new


def divided(claims: Mapping[str, Claim], cores: int, unit: int = 1) -> dict[str, int]:
    """Whole cores for each: one after the other to the pipeline that keeps the least of its rows.

    Greedy is max-min as long as what a pipeline keeps grows with its cores; where a further task
    costs more than it gives, it stops there. With more pipelines than cores each has one core, and
    they take turns.
    """
    even = max(cores // len(claims) // unit * unit, unit) if claims else 0
    given = {name: even if claim.load is None else unit for name, claim in claims.items()}
    spare = cores - sum(given.values())
    poorest = [(claim.kept(given[name]), name) for name, claim in claims.items()]
    heapq.heapify(poorest)
    while spare >= unit and poorest:
        share, name = heapq.heappop(poorest)
        more = claims[name].kept(given[name] + unit)
        if more > share:  # else it keeps all, or no more can help it
            given[name] += unit
            spare -= unit
            heapq.heappush(poorest, (more, name))
    return given


def better(claims: Mapping[str, Claim], new: Mapping[str, int], old: Mapping[str, int]) -> bool:
    """Whether a division is clearly better for the worst-off, or, if alike, for the next."""
    ours = sorted(claim.kept(new[name]) for name, claim in claims.items())
    theirs = sorted(claim.kept(old[name]) for name, claim in claims.items())
    for one, other in zip(ours, theirs, strict=True):
        if one > _BETTER * other or other > _BETTER * one:
            return one > other
    return False
