"""The cores of one application, divided among its pipelines, each with a target of its own.

Every pipeline has its own control loop and sheds by its own target; only the cores are shared.
While there are enough cores, each pipeline may take what the others have not asked for. When there
are too few, they are divided so that the pipeline that keeps the smallest share of its rows keeps
as much as possible (max-min). A tighter target leaves less of a core's time for rows, tau(T) =
(1 - 1.5 a / T) k / w, so it needs more cores for the same rows. The division therefore follows the
targets, and no pipeline pays for another's. A division stays until another is clearly better.
"""

import heapq
from collections.abc import Mapping
from dataclasses import replace

from tidegate.control.claim import Claim

_BETTER = 1.1
"""A new division must let the worst-off pipeline keep this many times as much as the old one."""


class Sharing:
    """Divides the cores among the pipelines, which report their claims at each of their ticks."""

    def __init__(self, cores: int, unit: int = 1) -> None:
        self.cores = cores // unit * unit
        self._unit = unit
        """Cores are given in multiples of this: the cores of an executor."""
        self._claims: dict[str, Claim] = {}
        self._division: dict[str, int] = {}
        self._news = 0
        """How many claims came in since the last division."""

    def share_of(self, name: str, claim: Claim) -> int | None:
        """Take in a pipeline's newest claim, and return its share."""
        self.tell(name, claim)
        return self.allowed(name)

    def tell(self, name: str, claim: Claim) -> None:
        """Take in a pipeline's newest claim. With its first claim, a pipeline joins the others."""
        self._claims[name] = claim
        self._news += 1
        # Divide once every pipeline can have reported: then no claim is older than one tick.
        if self._news >= len(self._claims) or name not in self._division:
            self._divide()

    def ask(self, name: str, cores: int) -> None:
        """A pipeline has asked for so many cores since its claim; the others see it at once."""
        if name in self._claims:
            self._claims[name] = replace(self._claims[name], cores=cores)

    def leave(self, name: str) -> None:
        """A pipeline has ended; its cores are free."""
        self._claims.pop(name, None)
        self._division.pop(name, None)
        self._news = len(self._claims)

    def allowed(self, name: str) -> int | None:
        """A pipeline's share: its part of the division, or all that the others have not asked for.

        The larger of the two counts. None when the pipeline is alone.
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
    """Give the cores one by one to the pipeline that keeps the smallest share of its rows.

    This greedy division is max-min as long as what a pipeline keeps grows with its cores. A
    pipeline gets no more cores once a further task would cost more than it gives. With more
    pipelines than cores, each has one core, and they take turns.
    """
    even = max(cores // len(claims) // unit * unit, unit) if claims else 0
    given = {name: even if claim.load is None else unit for name, claim in claims.items()}
    spare = cores - sum(given.values())
    poorest = [(claim.kept(given[name]), name) for name, claim in claims.items()]
    heapq.heapify(poorest)
    while spare >= unit and poorest:
        share, name = heapq.heappop(poorest)
        more = claims[name].kept(given[name] + unit)
        if more > share:  # else it keeps all its rows, or more cores would not help
            given[name] += unit
            spare -= unit
            heapq.heappush(poorest, (more, name))
    return given


def better(claims: Mapping[str, Claim], new: Mapping[str, int], old: Mapping[str, int]) -> bool:
    """Whether a division is clearly better for the worst-off pipeline.

    If it is much the same for that one, the next worst-off decides.
    """
    ours = sorted(claim.kept(new[name]) for name, claim in claims.items())
    theirs = sorted(claim.kept(old[name]) for name, claim in claims.items())
    for one, other in zip(ours, theirs, strict=True):
        if one > _BETTER * other or other > _BETTER * one:
            return one > other
    return False
