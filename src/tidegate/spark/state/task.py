"""The state of one task in one micro-batch: read the state rows of its keys, write the changes."""

import uuid
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update
from tidegate.spark.state.chains import Shards
from tidegate.spark.state.conform import conform
from tidegate.spark.state.due import DueTimes, due_keys
from tidegate.spark.state.identity import by_slot, distinct
from tidegate.spark.state.layout import (
    DEAD,
    EXPIRES,
    NEVER_US,
    SLOT,
    SYSTEM,
    Slots,
    file_schema,
    shard_of_slot,
)
from tidegate.spark.state.lookup import (
    NULL,
    Reach,
    Reads,
    due_us,
    find,
    integers,
    open_chains,
)
from tidegate.spark.state.merge import merged, turns
from tidegate.spark.state.new_file import write_file
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.version import StateFile, TaskChange, Version

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """The part that is the same in every batch: whose state it is, and where it is stored."""

    operator: str
    key: pa.Schema
    bound: BoundKeyed
    cache: NodeCache
    ttl_us: int | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns of its state files."""
        return file_schema(self.key, self.bound)


@dataclass(slots=True)
class TaskState:
    """The shards of one task at one version. Call `batch` first, then `change`."""

    keeper: Keeper
    version: Version
    shards: Shards
    batch_id: int
    at_us: int
    task: int
    reads: Reads = field(default_factory=Reads)
    _reaches: list[Reach] = field(default_factory=list)
    _slots: Slots = field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    _batch: KeyedBatch | None = None

    def batch(self, rows: pa.Table, slots: Slots) -> KeyedBatch:
        """The rows with the state of their keys, and of keys with state that is due."""
        keeper, bound = self.keeper, self.keeper.bound
        names = keeper.key.names
        schema = keeper.schema
        self._reaches = open_chains(keeper.cache, self.version, self.shards, self.reads, schema)
        keys = rows.select(names).cast(keeper.key)
        watermark_us = self.version.watermark_us(bound.delay_us)
        times = DueTimes.of(bound, self.version, watermark_us, self.at_us)
        if bound.due is not None and times is not None:
            due = due_keys(self._reaches, bound.due, times, names, self.reads)
            if due is not None:
                slots = np.concatenate([slots, due[0]])
                keys = pa.concat_tables([keys, due[1]])
        number, first = distinct(slots, keys)
        keys = keys.take(pa.array(first))
        self._slots = slots[first]
        table, state_key = find(self._reaches, self._slots, keys, bound.within, self.at_us, schema)
        found = KeyedBatch(
            rows=rows,
            keys=keys,
            row_key=number[: rows.num_rows],
            state=table.drop_columns(list(SYSTEM)),
            state_key=state_key,
            at_us=self.at_us,
            watermark_us=watermark_us,
        )
        self._batch = found if times is None else self._without_hidden(found, times)
        return self._batch

    def _without_hidden(self, batch: KeyedBatch, times: DueTimes) -> KeyedBatch:
        """The batch with its due state rows marked, and without keys that it is not about.

        A row that was due may be hidden by a newer one, which is due later. If its key has no rows
        either, the function is not to be called for it.
        """
        assert self.keeper.bound.due is not None
        column = batch.state.column(self.keeper.bound.due).combine_chunks()
        due = times.mask(due_us(column, np.zeros(batch.state.num_rows, dtype=np.bool_)))
        wanted = np.zeros(batch.keys.num_rows, dtype=np.bool_)
        wanted[batch.row_key] = True
        wanted[batch.state_key[due]] = True
        if wanted.all():
            return replace(batch, state_due=due)
        self._slots = self._slots[wanted]
        number = np.cumsum(wanted) - 1
        stays = wanted[batch.state_key]
        return replace(
            batch,
            keys=batch.keys.filter(pa.array(wanted)),
            row_key=number[batch.row_key],
            state=batch.state.filter(pa.array(stays)),
            state_key=number[batch.state_key[stays]],
            state_due=due[stays],
        )

    def change(self, update: Update) -> TaskChange | None:
        """Write the changes to one file; return None if there are none."""
        delta = self._delta(update)
        shards = self.version.shards
        slots = delta.column(SLOT).to_numpy()
        added = np.bincount(shard_of_slot(slots), minlength=shards)
        turn = turns(self.version, self.shards, self.batch_id, added, self._reaches)
        if len(turn):
            merges = np.zeros(shards, dtype=np.bool_)
            merges[turn.shards] = True
            mine = merges[shard_of_slot(slots)]
            whole = merged(
                self._reaches,
                self.version,
                delta.filter(pa.array(mine)),
                turn,
                self.keeper.key.names,
                self.keeper.bound.within,
                self.at_us,
            )
            delta = pa.concat_tables([delta.filter(pa.array(~mine)), whole])
            slots = delta.column(SLOT).to_numpy()
        if not delta.num_rows and not len(turn):
            return None
        if np.any(slots[1:] < slots[:-1]):
            delta = delta.take(pa.array(by_slot(slots)))
            slots = delta.column(SLOT).to_numpy()
        file, touched = self._write(delta, slots)
        # A shard that was merged changes even if nothing is left of it.
        kept = np.full(shards, -1, dtype=np.int64)
        kept[touched] = self.version.chains.lengths[touched]
        kept[turn.shards] = turn.kept
        changed = np.flatnonzero(kept >= 0)
        return TaskChange(file, changed, kept[changed])

    def shard_bytes(self) -> tuple[Numbers, Numbers]:
        """Shards that have state, and its size before this batch in bytes, estimated by rows."""
        total = np.zeros(self.version.shards)
        for reach in self._reaches:
            row_bytes = reach.layer.table.nbytes / max(1, len(reach.layer.slots))
            total[reach.shards] += (reach.ends - reach.begins) * row_bytes
        held = np.flatnonzero(total)
        return held, total[held].astype(np.int64)

    def _write(self, delta: pa.Table, slots: Slots) -> tuple[StateFile, Numbers]:
        keeper = self.keeper
        layout = len(keeper.cache.earlier)
        mark = f"l{layout}-" if layout else ""
        name = f"{self.batch_id:010d}-{self.task:05d}-{mark}{uuid.uuid4().hex[:8]}.arrow"
        return write_file(keeper.cache, name, delta, slots, keeper.schema, keeper.bound.due)

    def _delta(self, update: Update) -> pa.Table:
        """Turn upserts and drops into rows of a state file."""
        parts = []
        if update.upserts is not None and update.upserts.num_rows:
            parts.append(self._upserts(update.upserts, update.upsert_key))
        if update.drops is not None and update.drops.num_rows:
            parts.append(self._drops(update.drops, update.drop_key))
        return pa.concat_tables(parts) if parts else self.keeper.schema.empty_table()

    def _upserts(self, table: pa.Table, numbers: Numbers | None) -> pa.Table:
        wanted = pa.schema([*self.keeper.key, *self.keeper.bound.state])
        table = conform(table, wanted, f"operator '{self.keeper.operator}': upserts")
        numbers = self._numbers(table, numbers, "upserts")
        self._refuse_twice(table, numbers)
        table = self._still_to_come(table)
        expires = NEVER_US if self.keeper.ttl_us is None else self.at_us + self.keeper.ttl_us
        return self._file_rows(numbers, table, dead=False, expires_us=expires)

    def _still_to_come(self, table: pa.Table) -> pa.Table:
        """The rows, with due times that have passed already moved to just after the clock.

        Rows due by this batch's clock were handed in with this batch. A row that asks for such a
        time is handed in as soon as the clock moves on, as any other.
        """
        due, batch = self.keeper.bound.due, self._require_batch()
        clock_us = batch.at_us if self.keeper.bound.clock == "processing" else batch.watermark_us
        if due is None or clock_us is None:
            return table
        column = table.column(due)
        at_us = due_us(column.combine_chunks(), np.zeros(table.num_rows, dtype=np.bool_))
        past = at_us <= clock_us
        if not past.any():
            return table
        at_us[past] = clock_us + 1
        moved = pa.array(at_us, mask=at_us == NEVER_US).cast(pa.timestamp("us", column.type.tz))
        place = table.schema.get_field_index(due)
        return table.set_column(place, table.schema.field(due), moved.cast(column.type))

    def _drops(self, table: pa.Table, numbers: Numbers | None) -> pa.Table:
        batch, within = self._require_batch(), self.keeper.bound.within
        numbers = self._numbers(table, numbers, "drops")
        if within is None or within in table.column_names:
            dropped = batch.keys.take(pa.array(numbers))
            if within is not None:
                field_ = self.keeper.bound.state.field(within)
                what = f"operator '{self.keeper.operator}': drops"
                named = conform(table.select([within]), pa.schema([field_]), what)
                dropped = dropped.append_column(field_, named.column(within))
        else:  # without the within column, drop all state rows of the key
            gone = np.zeros(batch.keys.num_rows, dtype=np.bool_)
            gone[numbers] = True
            chosen = np.flatnonzero(gone[batch.state_key])
            numbers = batch.state_key[chosen]
            dropped = batch.state.select([*batch.keys.column_names, within]).take(pa.array(chosen))
        for column in self.keeper.bound.state:
            if column.name not in dropped.column_names:
                nulls = pa.nulls(dropped.num_rows, column.type)
                dropped = dropped.append_column(column.with_nullable(True), nulls)
        return self._file_rows(numbers, dropped, dead=True, expires_us=NEVER_US)

    def _file_rows(
        self, numbers: Numbers, table: pa.Table, *, dead: bool, expires_us: int
    ) -> pa.Table:
        count = table.num_rows
        columns = {
            SLOT: pa.array(self._slots[numbers]),
            DEAD: pa.array(np.full(count, dead)),
            EXPIRES: pa.array(np.full(count, expires_us, dtype=np.int64)),
            **{name: table.column(name) for name in table.column_names},
        }
        schema = self.keeper.schema
        return pa.table([columns[name] for name in schema.names], schema=schema)

    def _numbers(self, table: pa.Table, numbers: Numbers | None, what: str) -> Numbers:
        """The number of each row's key, matched by the key columns if no numbers are given."""
        batch = self._require_batch()
        if numbers is not None:
            if len(numbers) != table.num_rows:
                raise TidegateError(
                    f"operator '{self.keeper.operator}': {what} has {table.num_rows} rows but "
                    f"{len(numbers)} key numbers; give one number per row"
                )
            return np.asarray(numbers, dtype=np.int64)
        names = self.keeper.key.names
        keys = conform(
            table.select([n for n in names if n in table.column_names]),
            self.keeper.key,
            f"operator '{self.keeper.operator}': {what}",
        )
        place = match_keys(keys, batch.keys)
        if (place < 0).any():
            odd = keys.slice(int(np.argmax(place < 0)), 1).to_pylist()[0]
            raise TidegateError(
                f"operator '{self.keeper.operator}': {what} names the key {odd}, which is not "
                "among the keys of this batch; a function may only change the keys it was given"
            )
        return place

    def _refuse_twice(self, table: pa.Table, numbers: Numbers) -> None:
        within = self.keeper.bound.within
        sub = np.zeros(len(numbers), dtype=np.int64) if within is None else integers(table, within)
        if within is not None and np.count_nonzero(sub == NULL) > table.column(within).null_count:
            raise TidegateError(
                f"operator '{self.keeper.operator}': upserts has {NULL} in the within column "
                f"'{within}', which cannot be told apart from null; give another value"
            )
        order = np.lexsort((sub, numbers))
        twice = (numbers[order][1:] == numbers[order][:-1]) & (sub[order][1:] == sub[order][:-1])
        if twice.any():
            odd = table.select(self.keeper.key.names).slice(int(order[int(np.argmax(twice))]), 1)
            raise TidegateError(
                f"operator '{self.keeper.operator}': upserts has the key {odd.to_pylist()[0]} "
                "twice; give one state row per key"
                + (f" and '{within}'" if within is not None else "")
            )

    def _require_batch(self) -> KeyedBatch:
        if self._batch is None:
            raise TidegateError("`change` was called before `batch` on a task's state")
        return self._batch


def match_keys(asked: pa.Table, known: pa.Table) -> Numbers:
    """For each key in `asked`, its row in `known`, or -1; null matches null."""
    if len(known.column_names) == 1:
        values = known.column(0).combine_chunks()
        place = pc.index_in(asked.column(0), value_set=values)
        found: Numbers = place.fill_null(-1).combine_chunks().to_numpy().astype(np.int64)
        return found
    both = pa.concat_tables([known, asked])
    codes = np.zeros(both.num_rows, dtype=np.int64)
    for name in both.column_names:
        column = both.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        code = column.indices.to_numpy().astype(np.int64)
        _, codes = np.unique(codes * (code.max(initial=0) + 1) + code, return_inverse=True)
    head, tail = codes[: known.num_rows], codes[known.num_rows :]
    place_of = np.full(codes.max(initial=0) + 1, -1, dtype=np.int64)
    place_of[head] = np.arange(len(head))
    return place_of[tail]
