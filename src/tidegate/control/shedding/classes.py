"""Which rows to shed first when some are worth more than others (the overload paper's future work).

The least important go first: a class is shed only when all classes of lower priority are down to
their floors. Among classes of one priority the weights decide: twice the weight, twice the share
kept. A floor is the share of a class's own rows that is promised to it; it is never shed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tidegate.control.shedding.water_fill import water_fill
from tidegate.errors import AskedWrongly, nearest
from tidegate.units import format_duration


class Worth(Protocol):
    """What the rows of a class are worth, compared with those of other classes."""

    @property
    def priority(self) -> int:
        """Classes of lower priority are shed first."""
        ...

    @property
    def weight(self) -> float:
        """Among classes of one priority, the share kept is proportional to the weight."""
        ...

    @property
    def floor(self) -> float:
        """The share of its rows that is never shed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassWorth:
    """What the rows of a class are worth, as read from a record."""

    priority: int
    weight: float
    floor: float


def keep_by_class(
    keep: float, offered_by_class: Mapping[str, float], classes: Mapping[str, Worth]
) -> dict[str, float]:
    """The share to keep of each class, so that a share `keep` of all rows is kept.

    The total is met exactly whenever the floors allow it. Where they do not, the floors win, and
    more rows are kept than `keep` asks for.
    """
    if not 0.0 <= keep <= 1.0:
        raise AskedWrongly(f"a share of {keep:g} cannot be kept; give 0 to 1")
    check_classes(classes, offered_by_class)
    shares = {name: classes[name].floor for name in offered_by_class}
    total = sum(offered_by_class.values())
    if total <= 0.0 or keep >= 1.0:
        return dict.fromkeys(offered_by_class, 1.0)
    promised = sum(offered_by_class[name] * floor for name, floor in shares.items())
    left = keep * total - promised
    for priority in sorted({classes[name].priority for name in shares}, reverse=True):
        level = [name for name in shares if classes[name].priority == priority]
        wants = [offered_by_class[name] for name in level]
        floors = [shares[name] for name in level]
        base = sum(want * floor for want, floor in zip(wants, floors, strict=True))
        if left <= 0.0:
            break
        filled = water_fill(wants, [classes[n].weight for n in level], floors, base + left)
        shares.update(zip(level, map(float, filled), strict=True))
        if min(filled) < 1.0:
            break
        left -= sum(wants) - base
    return shares


def check_classes(classes: Mapping[str, Worth], named: Iterable[str]) -> None:
    """Refuse a class that does not exist, and floors or weights that are out of range."""
    for name in named:
        if name not in classes:
            raise AskedWrongly(f"there is no class of rows '{name}'{nearest(name, classes)}")
    for name, worth in classes.items():
        if not 0.0 <= worth.floor <= 1.0 or not 0.0 < worth.weight < float("inf"):
            raise AskedWrongly(
                f"class '{name}' has the floor {worth.floor:g} and the weight {worth.weight:g};"
                " give a floor from 0 to 1 and a weight above 0"
            )


def refuse_overpromised(
    classes: Mapping[str, Worth], rate_by_class: Mapping[str, float], capacity_rate: float
) -> None:
    """Refuse floors that add up to more rows per second than there is capacity for."""
    check_classes(classes, rate_by_class)
    promised = sum(rate * classes[name].floor for name, rate in rate_by_class.items())
    if promised > capacity_rate * (1.0 + 1e-9):
        raise AskedWrongly(
            f"the promised floors add up to {promised:,.0f} rows/s, but {capacity_rate:,.0f} rows/s"
            f" can be carried; lower the floors to {capacity_rate / promised:.0%} of what they are,"
            " or allow more cores"
        )


def refuse_below_floor(target_s: float, floor_s: float) -> None:
    """Refuse a target that even empty micro-batches miss: shedding cannot reach it."""
    if target_s <= floor_s:
        raise AskedWrongly(
            f"a target of {format_duration(target_s)} is below the floor of"
            f" {format_duration(floor_s, round_up=True)}, the latency of batches with no rows at"
            " all, which neither cores nor shedding lower; give a target above it"
        )
