"""Splits of cores over the operators of an application, written as in DRS: 10:11:1."""

from collections.abc import Sequence


def shown(split: Sequence[int]) -> str:
    """A split as a text."""
    return ":".join(str(count) for count in split)


def neighbours(split: tuple[int, ...], count: int) -> list[tuple[int, ...]]:
    """The splits nearest to this one, by moving one core after the other; nearest first.

    Every operator keeps at least one core.
    """
    found: dict[tuple[int, ...], None] = {}
    frontier = [split]
    while len(found) < count and frontier:
        reached = dict.fromkeys(
            moved for one in frontier for moved in _moved(one) if moved != split
        )
        frontier = [moved for moved in reached if moved not in found]
        found.update(dict.fromkeys(frontier))
    return list(found)[:count]


def _moved(split: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Every split that differs by one core."""
    found = []
    for giver in range(len(split)):
        for taker in range(len(split)):
            if giver != taker and split[giver] > 1:
                moved = list(split)
                moved[giver] -= 1
                moved[taker] += 1
                found.append(tuple(moved))
    return found
