"""How a source may be shed in an overload: classes of rows, their floors, and what is counted.

Without classes all rows are alike, as in the overload paper (section 2). Classes are that paper's
future work: the rows of some are worth more than others', and a floor guarantees a share of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from tidegate.errors import AskedWrongly
from tidegate.pipelines.schema import require_binary, require_columns

WEIGHT = "_weight"
"""The column with a kept row's weight, 1 / keep: how many offered rows it represents."""
OTHER = "other"
"""The class of rows whose value is null or has no class of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShedClass:
    """What the rows of one class are worth, compared with the other classes."""

    priority: int = 0
    """Classes of a lower priority are shed first."""
    weight: float = 1.0
    """The worth of a row among classes of one priority; a higher weight means less is shed."""
    floor: float = 0.0
    """The fraction of its rows that is always kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shedding:
    """How one source may be shed, as the user declared it with `.shed(...)`."""

    by: str | None = None
    """The column with the class of a row."""
    classes: Mapping[str, ShedClass]
    """The classes by their value of `by`, as text; `OTHER` is for all values not listed."""
    key: tuple[str, ...] = ()
    """The columns whose shards are key groups; rows are also counted per key group."""
    shards: int = 0
    weight: bool = False
    """Whether rows get the column `WEIGHT`."""
    unique: tuple[str, ...] = ()
    """Columns whose values no two rows share; empty when unknown."""

    @property
    def names(self) -> tuple[str, ...]:
        """The classes in the order in which they are counted, `OTHER` last."""
        if self.by is None:
            return ()
        return (*(name for name in self.classes if name != OTHER), OTHER)


NOT_DECLARED = Shedding(classes={})
"""The shedding of a source without a call of `.shed(...)`: all its rows are alike."""


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
    """Check the arguments of `.shed(...)`, before anything starts."""
    if (by is None) != (not classes):
        raise AskedWrongly(
            f"{what}: by and classes go together; give both, as in by='tier', "
            "classes={'gold': tg.ShedClass(floor=0.9)}, or neither"
        )
    found = _checked_classes(classes or {}, what)
    if by is not None:
        _check_class_column(by, schema, what)
        found.setdefault(OTHER, ShedClass())
        if all(entry.floor >= 1.0 for entry in found.values()):
            raise AskedWrongly(
                f"{what}: every class has a floor of 1, so nothing could be shed; lower a floor"
            )
    require_columns(key, schema, what)
    require_columns(unique, schema, what)
    for name in unique:
        kind = schema.field(name).type
        if pa.types.is_nested(kind):
            raise AskedWrongly(
                f"{what}: the unique column '{name}' is {kind}; give plain columns whose values no "
                "two rows share, as in unique=('partition', 'offset')"
            )
    if WEIGHT in schema.names:
        raise AskedWrongly(
            f"{what}: the source already has a column '{WEIGHT}', which Tidegate adds; rename it"
        )
    return Shedding(
        by=by,
        classes=found,
        key=key,
        shards=shards if key else 0,
        weight=weight,
        unique=unique,
    )


def _checked_classes(classes: Mapping[str, ShedClass], what: str) -> dict[str, ShedClass]:
    """The classes, each with a floor and a weight that mean something."""
    found: dict[str, ShedClass] = {}
    for name, entry in classes.items():
        if not isinstance(entry, ShedClass):
            raise AskedWrongly(
                f"{what}: class '{name}' is a {type(entry).__name__}, expected tg.ShedClass(...)"
            )
        if not 0.0 <= entry.floor <= 1.0:
            raise AskedWrongly(
                f"{what}: class '{name}' has the floor {entry.floor:g}; give a fraction of its "
                "rows, from 0 to 1, that is never shed"
            )
        if not 0.0 < entry.weight < float("inf"):
            raise AskedWrongly(
                f"{what}: class '{name}' has the weight {entry.weight:g}; give more than 0"
            )
        found[str(name)] = entry
    return found


def _check_class_column(by: str, schema: pa.Schema, what: str) -> None:
    """Refuse a class column whose values cannot be told apart exactly."""
    require_columns((by,), schema, what)
    require_binary(schema.field(by), f"{what}: the class column")
    kind = schema.field(by).type
    if pa.types.is_nested(kind) or pa.types.is_floating(kind):
        raise AskedWrongly(
            f"{what}: the class column '{by}' is {kind}; use strings, whole numbers or booleans"
        )
