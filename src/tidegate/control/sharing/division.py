"""The cores of one application among its pipelines, each with a target of its own.

Every pipeline has its own loop and sheds by its own target; what they share is the cores. While
these suffice, each may take what the others have not asked for. When they do not, they are divided
so that the pipeline that keeps the smallest share of its rows keeps as much as it can (max-min): a
tighter target needs more cores for the same rows (see `shed_shares`), so the division follows the
targets, and no pipeline pays for another's. A division stays until another is clearly better.
"""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidegate.control.decision import Decision
from tidegate.control.learning.segment_model import SegmentModel
from tidegate.control.measurement import Measurement
from tidegate.control.operator_tasks import shared, tasks_on
from tidegate.control.sharing.query_shares import QueryLoad
from tidegate.models.microbatch.station import BatchCost

_BETTER = 1.1
"""A new division must give the worst-off pipeline so many times as much."""
_BELOW_FLOOR = 0.5
"""Share of its time that a pipeline works whose target no shedding reaches: twice its floor."""
_NEAR_FLOOR = 0.95
"""From this share of idle time on a target counts as out of reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a pipeline says of itself."""

    cores: int
    """Asked for."""
    load: QueryLoad | None = None
    """None while its costs are unknown: an even part is then its own."""


class Claimant:
    """Learns what a pipeline costs, whatever its policy is, and speaks for it."""

    def __init__(self, name: str, target_s: float) -> None:
        self._name = name
        self._target_s = target_s
        self._models: dict[str, SegmentModel] = {}

    def observe(self, measurement: Measurement) -> Claim:
        """Take in a tick; what the pipeline claims after it.

        Segments add up: with cores split by load all are equally busy, rho, and the latency is the
        sum of 1.5 a / (1 - rho).
        """
        fixed_s = per_task_s = work_s = 0.0
        known = bool(measurement.segments)
        outside = measurement.arrival_rate
        for segment in measurement.segments:
            model = self._models.setdefault(segment.name, SegmentModel())
            model.learn(measurement, segment)
            if model.cost is None:
                known = False
                continue
            first = segment is measurement.segments[0] or outside <= 0.0
            visits = 1.0 if first else segment.arrival_rate / (outside * measurement.keep or 1.0)
            fixed_s += visits * model.cost.fixed_s
            per_task_s += visits * model.cost.per_task_s
            work_s += visits * model.cost.work_s * model.imbalance
        cores = measurement.cores_asked
        if not known:
            return Claim(cores=cores)
        return Claim(
            cores=cores,
            load=QueryLoad(
                name=self._name,
                target_s=self._target_s,
                # The first segment's fades when the source is silent: an old rate is no claim.
                arrival_rate=measurement.segments[0].arrival_rate,
                cost=BatchCost(fixed_s=fixed_s, per_task_s=per_task_s, work_s=work_s),
            ),
        )


class Sharing:
    """What each pipeline may have; told by all of them, tick by tick."""

    def __init__(self, cores: int, unit: int = 1) -> None:
        self.cores = cores // unit * unit
        self._unit = unit
        """Cores come in multiples of this: an executor's."""
        self._claims: dict[str, Claim] = {}
        self._division: dict[str, int] = {}
        self._news = 0
        """Claims since it was last divided."""

    def tell(self, name: str, claim: Claim) -> None:
        """A pipeline's newest claim; the first one joins it to the others."""
        self._claims[name] = claim
        self._news += 1
        # Once a round: the division is of all claims, and a tick more or less old.
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
        """Cores that a pipeline may ask for now; None: it is alone, and has no one to share with.

        Its part of the division, and whatever the others have left.
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


def give_way(measurement: Measurement) -> Decision | None:
    """Letting go what is not this pipeline's to have; None when it holds no more than it may."""
    allowed = measurement.cores_allowed
    if allowed is None or measurement.cores_asked <= allowed:
        return None
    return Decision(
        reason=f"{allowed} cores are its share of the application's",
        cores=allowed,
        tasks=tasks_on(measurement, shared(measurement, allowed)),
    )


def divided(claims: Mapping[str, Claim], cores: int, unit: int = 1) -> dict[str, int]:
    """Whole cores for each: one after the other to whoever keeps the least of its rows.

    Greedy is max-min as long as what a pipeline keeps grows with its cores; where a further task
    costs more than it gives, it stops there. Pipelines beyond the number of cores have one each and
    take turns.
    """
    even = max(cores // len(claims) // unit * unit, unit) if claims else 0
    given = {name: even if claim.load is None else unit for name, claim in claims.items()}
    spare = cores - sum(given.values())
    poorest = [(kept(claim, given[name]), name) for name, claim in claims.items()]
    heapq.heapify(poorest)
    while spare >= unit and poorest:
        share, name = heapq.heappop(poorest)
        more = kept(claims[name], given[name] + unit)
        if more > share:  # else it keeps all, or no more can help it
            given[name] += unit
            spare -= unit
            heapq.heappush(poorest, (more, name))
    return given


def kept(claim: Claim, cores: int) -> float:
    """The share of its rows that a pipeline keeps at its target: tau(T) / lambda."""
    load = claim.load
    if load is None:
        return 1.0
    idle = 1.5 * load.cost.overhead_s(cores) / load.target_s
    busy = 1.0 - idle if idle < _NEAR_FLOOR else _BELOW_FLOOR
    needed = load.cost.work_s * load.arrival_rate
    return 1.0 if busy * cores >= needed else busy * cores / needed


def better(claims: Mapping[str, Claim], new: Mapping[str, int], old: Mapping[str, int]) -> bool:
    """Whether a division is clearly better for the worst-off, or, if alike, for the next."""
    ours = sorted(kept(claim, new[name]) for name, claim in claims.items())
    theirs = sorted(kept(claim, old[name]) for name, claim in claims.items())
    for one, other in zip(ours, theirs, strict=True):
        if one > _BETTER * other or other > _BETTER * one:
            return one > other
    return False


__all__ = ["Claim", "Claimant", "Sharing", "better", "divided", "give_way", "kept"]
