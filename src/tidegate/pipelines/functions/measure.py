"""Measures: folds with one named result per group, such as a count; aggregates of several."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.columns import Numbers
from tidegate.pipelines.functions.fold import (
    BoundFold,
    Columns,
    FoldCombining,
    Folded,
    Groups,
    KeptPerGroup,
    bind_per_key,
)
from tidegate.pipelines.functions.merges import Merges
from tidegate.pipelines.functions.partial_states import PartialStates
from tidegate.pipelines.identity import Identity
from tidegate.pipelines.keyed import BoundKeyed


class BoundMeasure(KeptPerGroup, Protocol):
    """A measure bound to its rows; every group has exactly one state row and one result row."""

    @property
    def merges(self) -> Merges:
        """Whether adding states of parts of the rows gives exactly the state of all rows."""
        ...

    def exact(self, rows: pa.Table) -> bool:
        """Whether the states of parts of these rows can be held exactly."""
        ...

    def add(self, groups: Groups) -> Columns:
        """The new state of every group."""
        ...

    def results(self, columns: Columns) -> list[pa.Array]:
        """The result of every group."""
        ...


@dataclass(frozen=True, slots=True)
class Measure:
    """The common part of count, sum, mean, min, max and latest; `as_` names the result."""

    as_: str | None

    def measure(self, rows: pa.Schema, name: str | None) -> BoundMeasure:
        """Bind to the rows; the result gets this name, or the measure's default."""
        raise NotImplementedError

    def identity(self) -> Identity:
        """Its kind and options; the name of the result is the name of the state's column."""
        return {"function": self.kind, **_options(self)}

    @property
    def kind(self) -> str:
        """The name by which users call it."""
        return type(self).__name__.lower()

    def over(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundFold:
        """A single measure is an aggregate of one."""
        return BoundAggregate((self.measure(rows, self.as_),))

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Bind as an operator of its own, with one state row per key."""
        return bind_per_key(self, rows, key, self.kind)


def _options(measure: Measure) -> dict[str, object]:
    """The fields of a measure without its name, as JSON values."""
    values = {field.name: getattr(measure, field.name) for field in fields(measure)}
    del values["as_"]
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


@dataclass(frozen=True, slots=True)
class BoundAggregate:
    """Several measures in one state row."""

    measures: tuple[BoundMeasure, ...]

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the rows that the measures read, each once."""
        return tuple(dict.fromkeys(name for measure in self.measures for name in measure.needs))

    @property
    def state(self) -> tuple[pa.Field, ...]:
        """The state columns of all measures."""
        return tuple(field for measure in self.measures for field in measure.state)

    @property
    def result(self) -> tuple[pa.Field, ...]:
        """The results of all measures."""
        return tuple(field for measure in self.measures for field in measure.result)

    @property
    def merges(self) -> Merges:
        """As far as all its measures can be merged."""
        return min(measure.merges for measure in self.measures)

    def exact(self, rows: pa.Table) -> bool:
        """Whether all its measures hold these rows exactly."""
        return all(measure.exact(rows) for measure in self.measures)

    def combining(self, rows: pa.Schema) -> FoldCombining | None:
        """The states of parts of the rows take their place, where all measures can be merged."""
        return None if self.merges == Merges.NEVER else PartialStates(self, rows)

    def fold(self, groups: Groups) -> Folded:
        """Add the rows to every measure."""
        columns: dict[str, pa.Array] = {}
        for measure in self.measures:
            columns.update(measure.add(groups))
        return Folded(np.arange(groups.count), columns)

    def finish(self, columns: Columns) -> tuple[Numbers | None, list[pa.Array]]:
        """One row per group."""
        return None, [array for measure in self.measures for array in measure.results(columns)]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Named measures that share one state row per key."""

    measures: Mapping[str, Measure]

    def identity(self) -> Identity:
        """The measures under their names; an aggregate of one keeps the same state as the one."""
        if len(self.measures) == 1:
            return next(iter(self.measures.values())).identity()
        measures = {name: measure.identity() for name, measure in self.measures.items()}
        return {"function": "aggregate", "measures": measures}

    def over(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundFold:
        """Bind every measure under its name."""
        return BoundAggregate(
            tuple(measure.measure(rows, name) for name, measure in self.measures.items())
        )

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Bind as an operator of its own, with one state row per key."""
        return bind_per_key(self, rows, key, "aggregate")


def aggregate(**measures: Measure) -> Aggregate:
    """Several measures in one state row: `aggregate(n=count(), total=sum("price"))`."""
    if not measures:
        raise AskedWrongly("aggregate has no measure; give at least one, as in n=count()")
    for name, measure in measures.items():
        if not isinstance(measure, Measure):
            raise AskedWrongly(
                f"aggregate: '{name}' is a {type(measure).__name__}; expected count(), sum(), "
                "mean(), min(), max() or latest()"
            )
        if measure.as_ is not None:
            raise AskedWrongly(
                f"aggregate: '{name}' also has as_='{measure.as_}', but the keyword is the name; "
                "leave as_ out"
            )
    return Aggregate(measures)
