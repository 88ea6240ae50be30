"""Counts of the rows offered, kept and shed, by source, class and key group."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCount:
    """Rows of one class of a source."""

    name: str
    offered: int
    kept: int

    @property
    def shed(self) -> int:
        """Rows that were dropped before the first operator."""
        return self.offered - self.kept


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCount:
    """Rows of one source: offered = kept + shed, to the row."""

    name: str
    offered: int
    kept: int
    classes: tuple[ClassCount, ...] = ()
    groups_offered: tuple[int, ...] = ()
    """Rows offered per key group, if the source names a key to count by. They are counted only
    while rows are shed."""
    groups_kept: tuple[int, ...] = ()

    @property
    def shed(self) -> int:
        """Rows that were dropped before the first operator."""
        return self.offered - self.kept


def added(one: SourceCount, other: SourceCount) -> SourceCount:
    """Add two counts of one source; classes are matched by name, key groups by number."""
    names = dict.fromkeys(part.name for part in (*one.classes, *other.classes))
    classes = tuple(
        ClassCount(
            name=name,
            offered=sum(p.offered for p in (*one.classes, *other.classes) if p.name == name),
            kept=sum(p.kept for p in (*one.classes, *other.classes) if p.name == name),
        )
        for name in names
    )
    return SourceCount(
        name=one.name,
        offered=one.offered + other.offered,
        kept=one.kept + other.kept,
        classes=classes,
        groups_offered=_summed(one.groups_offered, other.groups_offered),
        groups_kept=_summed(one.groups_kept, other.groups_kept),
    )


def _summed(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    if len(one) != len(other):  # the number of key groups has changed
        return one or other if not (one and other) else other
    return tuple(a + b for a, b in zip(one, other, strict=True))
