"""Floors: periods in which a pipeline has at least so many cores, whatever its policy decides.

A user who knows that the market opens at 08:30 need not wait for a forecast to learn it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidegate.control.bounds import Bounds
from tidegate.control.periods import Period
from tidegate.errors import AskedWrongly

_FLOOR = re.compile(r"(?P<period>.*\S)\s+cores\s*>=\s*(?P<cores>\d+)\s*")


@dataclass(frozen=True, slots=True)
class Floor:
    """At least so many cores in a period."""

    period: Period
    cores: int

    @classmethod
    def parse(cls, text: str) -> "Floor":
        """Read a floor written as `mon-fri 08:30-10:00 Europe/Berlin cores>=8`."""
        match = _FLOOR.fullmatch(text)
        if match is None or int(match["cores"]) < 1:
            raise AskedWrongly(
                f"'{text}' is not a floor; write it like 08:30-10:00 cores>=8, or mon-fri"
                " 08:30-10:00 Europe/Berlin cores>=8"
            )
        return cls(Period.parse(match["period"]), int(match["cores"]))

    def __str__(self) -> str:
        return f"{self.period} cores>={self.cores}"


def floors_of(texts: Sequence[str]) -> tuple[Floor, ...]:
    """Floors as a person writes them."""
    return tuple(Floor.parse(text) for text in texts)


def raised(bounds: Bounds, floors: Iterable[Floor], at_s: float, ahead_s: float) -> Bounds:
    """The bounds with the highest floor that holds now, or when cores asked for now will be there.

    The maximum wins over a floor.
    """
    held = [
        floor.cores
        for floor in floors
        if floor.period.holds(at_s) or floor.period.holds(at_s + ahead_s)
    ]
    return Bounds(min(max(bounds.least, *held), bounds.most), bounds.most) if held else bounds
