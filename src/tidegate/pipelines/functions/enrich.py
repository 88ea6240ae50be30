"""Rows get the columns of a table that changes: a stream of its rows, the newest of each key kept.

The changes of a micro-batch come before its rows, whatever the order in which they arrived. So a
replay, which has the same changes and rows, gives the same answers.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.columns import Mask, Numbers, distinct_names, valid, whole
from tidegate.pipelines.identity import Identity
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update
from tidegate.pipelines.packing import INPUT, Packing, packing_of

ROWS, TABLE = 0, 1


@dataclass(frozen=True, slots=True)
class BoundEnrichment:
    """An enrichment bound to the columns of the rows and of the table."""

    packing: Packing
    keeps_all: bool
    """Whether rows whose key is not in the table are emitted, with nulls."""
    state: pa.Schema
    """The columns of the table that are added."""
    places: tuple[str, ...]
    """Where they stand in the packed rows."""
    output: pa.Schema

    def update(self, batch: KeyedBatch) -> Update:
        """Take over the newest row of each key, then look the rows up."""
        number = batch.rows.column(INPUT).to_numpy()
        changes = np.flatnonzero(number == TABLE)
        asking = np.flatnonzero(number == ROWS)
        usable = _with_key(batch)
        changes = changes[usable[batch.row_key[changes]]]
        newest = np.full(batch.keys.num_rows, -1, dtype=np.int64)
        newest[batch.row_key[changes]] = changes  # of several, the last is kept
        changed = np.flatnonzero(newest >= 0)
        values = self._values(batch, newest)
        key = batch.row_key[asking]
        found = ((newest >= 0) | ~batch.is_new())[key] & usable[key]
        if not self.keeps_all:
            asking, key, found = asking[found], key[found], found[found]
        rows = batch.rows.select(list(self.packing.places[ROWS])).take(pa.array(asking))
        index = pa.array(key, mask=~found)
        added = [column.take(index) for column in values]
        upserts = [*batch.keys.take(pa.array(changed)).columns]
        upserts += [column.take(pa.array(changed)) for column in values]
        return Update(
            output=pa.Table.from_arrays([*rows.columns, *added], schema=self.output),
            upserts=pa.Table.from_arrays(
                upserts, schema=pa.schema([*batch.keys.schema, *self.state])
            ),
            upsert_key=changed,
        )

    def _values(self, batch: KeyedBatch, newest: Numbers) -> list[pa.Array]:
        """For each key, the columns of its newest row in the table."""
        aligned = batch.aligned()
        count = batch.keys.num_rows
        place = np.where(newest >= 0, count + newest, np.arange(count))
        found = []
        for field, name in zip(self.state, self.places, strict=True):
            old = whole(aligned[field.name], field.type)
            new = whole(batch.rows[name], field.type)
            found.append(pa.concat_arrays([old, new]).take(pa.array(place)))
        return found


def _with_key(batch: KeyedBatch) -> Mask:
    """The keys without a null: a null is equal to no other value."""
    usable = np.ones(batch.keys.num_rows, dtype=np.bool_)
    for column in batch.keys.columns:
        present = valid(whole(column, column.type))
        if present is not None:
            usable &= present
    return usable


@dataclass(frozen=True, slots=True)
class Enrichment:
    """A keyed function of packed rows: those of the stream, and changes of the table."""

    packing: Packing
    how: str
    suffix: str

    def identity(self) -> Identity:
        """The newest row of each key, whoever reads it."""
        return {"function": "enrich"}

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Fix what is kept of the table, and the names under which it is added."""
        mine, table = self.packing.inputs
        output, added = enriched(mine, table, self._table_key(), self.how, self.suffix)
        state = pa.schema([table.field(name).with_nullable(True) for name in added])
        bound = BoundEnrichment(
            self.packing,
            self.how == "left",
            state,
            tuple(self.packing.place(TABLE, name) for name in added),
            output,
        )
        return BoundKeyed(update=bound.update, state=state, output=output, identity=self.identity())

    def _table_key(self) -> tuple[str, ...]:
        names = self.packing.of(TABLE)
        return tuple(names[place] for place in self.packing.key)


def enriched(
    rows: pa.Schema, table: pa.Schema, table_key: tuple[str, ...], how: str, suffix: str
) -> tuple[pa.Schema, list[str]]:
    """The columns of enriched rows, and the columns of the table that are added."""
    added = [name for name in table.names if name not in table_key]
    fields = list(rows)
    for name in added:
        shown = name + suffix if name in rows.names else name
        field = table.field(name).with_name(shown)
        fields.append(field.with_nullable(field.nullable or how == "left"))
    distinct_names([field.name for field in fields], "enrich")
    return pa.schema(fields), added


def check_enrich(how: str, table: pa.Schema, key: tuple[str, ...], what: str) -> None:
    """Refuse a kind that there is not, and a table with nothing to add."""
    if how not in ("left", "inner"):
        raise AskedWrongly(f"{what}: how='{how}'; give 'left' or 'inner'")
    if set(table.names) <= set(key):
        raise AskedWrongly(f"{what}: the table has no columns besides its key; nothing to add")


def enrichment_of(
    inputs: tuple[pa.Schema, pa.Schema],
    keys: tuple[tuple[str, ...], tuple[str, ...]],
    how: str,
    suffix: str,
    what: str,
) -> Enrichment:
    """Check what the user asks of a table that changes."""
    packing = packing_of(inputs, keys, None, what)
    check_enrich(how, inputs[TABLE], keys[TABLE], what)
    return Enrichment(packing, how, suffix)
