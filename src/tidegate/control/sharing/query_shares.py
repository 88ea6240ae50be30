"""Several queries on one overloaded machine, each with a target of its own: who gets how much.

A micro-batch query with a tight target must leave more of its cores idle: tau(T) = (1 - 1.5 a / T)
k / w, so keeping all its rows takes lambda w / (1 - 1.5 a / T) cores, the more the tighter T is.
Where the cores do not suffice for all, every query keeps the same share of its rows (weights and
floors change that), and its cores follow from its target. So 200 queries with one target share
evenly, as in the overload paper's experiment, and no query pays for the target of another.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.control.shedding.water_fill import water_fill
from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.station import BatchCost
from tidegate.units import format_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryLoad:
    """A query: what comes, what it costs, what was promised."""

    name: str
    target_s: float
    arrival_rate: float
    cost: BatchCost
    tasks: int = 1
    """Of which its fixed cost is made."""
    imbalance: float = 1.0
    weight: float = 1.0
    """Twice the weight, twice the share of rows kept."""
    floor: float = 0.0
    """The share of its rows that it keeps whatever happens."""

    @property
    def idle(self) -> float:
        """The share of its time that the target leaves for fixed costs: 1.5 a / T."""
        return 1.5 * self.cost.overhead_s(self.tasks) / self.target_s

    @property
    def wanted_cores(self) -> float:
        """Cores with which it keeps all its rows at its target."""
        return self.arrival_rate * self.cost.work_s * self.imbalance / (1.0 - self.idle)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryShare:
    """What it gets."""

    name: str
    cores: float
    """Of the machine, in cores; a fraction where queries take turns."""
    keep: float


def shares(queries: Sequence[QueryLoad], cores: float) -> list[QueryShare]:
    """Cores and keep of each query; in sum all the cores there are.

    Where there is no overload all keep everything, and spare cores follow the need.
    """
    _check(queries, cores)
    wanted = [query.wanted_cores for query in queries]
    keeps = water_fill(
        wanted, [query.weight for query in queries], [query.floor for query in queries], cores
    )
    used = [want * float(keep) for want, keep in zip(wanted, keeps, strict=True)]
    spare = cores / sum(used) if sum(used) > 0.0 else 0.0
    return [
        QueryShare(name=query.name, cores=part * spare, keep=float(keep))
        for query, part, keep in zip(queries, used, keeps, strict=True)
    ]


def _check(queries: Sequence[QueryLoad], cores: float) -> None:
    for query in queries:
        if query.target_s <= 0.0 or query.idle >= 1.0:
            floor_s = 1.5 * query.cost.overhead_s(query.tasks)
            raise AskedWrongly(
                f"query '{query.name}' has a target of {query.target_s:g} s, but its batches take"
                f" {format_duration(floor_s, round_up=True)} with no row in them; give a target"
                " above that"
            )
        if not 0.0 <= query.floor <= 1.0 or query.weight <= 0.0:
            raise AskedWrongly(
                f"query '{query.name}' has the floor {query.floor:g} and the weight"
                f" {query.weight:g}; give a floor from 0 to 1 and a weight above 0"
            )
    if cores <= 0.0:
        raise AskedWrongly(f"{cores:g} cores cannot be shared; give more than 0")
    promised = sum(query.wanted_cores * query.floor for query in queries)
    if promised > cores * (1.0 + 1e-9):
        raise AskedWrongly(
            f"the promised floors take {promised:.3g} cores, but there are {cores:g}; lower the"
            f" floors to {cores / promised:.0%} of what they are, or give more cores"
        )
