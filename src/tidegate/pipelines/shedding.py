"""How a source may be shed when there is nothing left to add: classes, floors, what is counted.

Without classes all rows are alike, as in the overload paper (section 2). Classes are its future
work: the rows of some are worth more than those of others, and some have been promised a floor.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from tidegate.errors import AskedWrongly
from tidegate.pipelines.schema import require_columns

WEIGHT = "_weight"
"""The column that says how many offered rows a kept one stands for: 1 / keep."""
OTHER = "other"
"""The class of rows whose value was not declared, or is null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShedClass:
    """What the rows of one class are worth, beside those of the other classes."""

    priority: int = 0
    """Classes of a lower priority are shed first."""
    weight: float = 1.0
    """Among classes of one priority: how much a row is worth, so how much less of it is shed."""
    floor: float = 0.0
    """The fraction of its rows that is kept whatever happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shedding:
    """What the user said about shedding a source."""

    by: str | None = None
    """The column that tells the class of a row."""
    classes: Mapping[str, ShedClass]
    """By the value of `by`, as text; `OTHER` stands for all values that are not named."""
    key: tuple[str, ...] = ()
    """Rows are also counted per key group: the shards of these columns."""
    shards: int = 0
    weight: bool = False
    """Whether rows carry `WEIGHT`."""
    unique: tuple[str, ...] = ()
    """Columns that no two rows share; empty: unknown."""

    @property
    def names(self) -> tuple[str, ...]:
        """The classes in the order in which they are counted, `OTHER` last."""
        if self.by is None:
            return ()
        return (*(name for name in self.classes if name != OTHER), OTHER)


NOTHING_SAID = Shedding(classes={})
"""A source of which nothing was said: all its rows are alike."""


def shedding_of(
    schema: pa.Schema,
    what: str,
    *,
    by: str | None,
    classes: Mapping[str, ShedClass] | None,
    key: tuple[str, ...],
    shards: int,
    weight: bool,
    unique: tuple[str, ...] = (),
) -> Shedding:
    """Check what was asked for, before anything starts."""
    if (by is None) != (not classes):
        raise AskedWrongly(
            f"{what}: by names the column and classes what its values are worth; give both, as in "
            "by='tier', classes={'gold': tg.ShedClass(floor=0.9)}, or none"
        )
    found: dict[str, ShedClass] = {}
    for name, entry in (classes or {}).items():
        if not isinstance(entry, ShedClass):
            raise AskedWrongly(
                f"{what}: class '{name}' is a {type(entry).__name__}, expected tg.ShedClass(...)"
            )
        if not 0.0 <= entry.floor <= 1.0:
            raise AskedWrongly(
                f"{what}: class '{name}' has the floor {entry.floor:g}; give the fraction of its "
                "rows that is never shed, from 0 to 1"
            )
        if not 0.0 < entry.weight < float("inf"):
            raise AskedWrongly(
                f"{what}: class '{name}' has the weight {entry.weight:g}; give more than 0"
            )
        found[str(name)] = entry
    if by is not None:
        require_columns((by,), schema, what)
        kind = schema.field(by).type
        if pa.types.is_nested(kind) or pa.types.is_floating(kind):
            raise AskedWrongly(
                f"{what}: the class column '{by}' is {kind}; use strings, whole numbers or booleans"
            )
        found.setdefault(OTHER, ShedClass())
        if all(entry.floor >= 1.0 for entry in found.values()):
            raise AskedWrongly(
                f"{what}: every class was promised all of its rows, so nothing could be shed; "
                "lower a floor"
            )
    require_columns(key, schema, what)
    require_columns(unique, schema, what)
    for name in unique:
        kind = schema.field(name).type
        if pa.types.is_nested(kind):
            raise AskedWrongly(
                f"{what}: the unique column '{name}' is {kind}; name plain columns that no two "
                "rows share, as unique=('partition', 'offset')"
            )
    if WEIGHT in schema.names:
        raise AskedWrongly(
            f"{what}: the source has a column '{WEIGHT}' already; rename it, the name is ours"
        )
    return Shedding(
        by=by,
        classes=found,
        key=key,
        shards=shards if key else 0,
        weight=weight,
        unique=unique,
    )
