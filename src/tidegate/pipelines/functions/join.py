"""A join of two streams by key and event time: both sides' rows wait in the state for each other.

A row waits until no row that could match it can come any more, which the watermark says. A late row
is left out. So the result of an inner join is that of a batch join of all rows that were not late,
whatever the order in which they came, and an outer join adds each row without a match once.
"""

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from tidegate.errors import AskedWrongly, nearest
from tidegate.pipelines.functions.columns import Mask, Numbers, distinct_names, valid, whole
from tidegate.pipelines.functions.matching import numbers_after, pairs_within
from tidegate.pipelines.functions.times import delay_us, microseconds_of, time_type, times_of
from tidegate.pipelines.identity import Identity
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update
from tidegate.pipelines.packing import INPUT, Packing, packing_of

How = Literal["inner", "left", "right", "full"]
LEFT, RIGHT = 0, 1
NUMBER = "_number"
UNTIL = "_until"
MATCHED = "_matched"
_NO_ROW = -1


@dataclass(frozen=True, slots=True)
class BoundJoin:
    """A join bound to the columns of both sides."""

    packing: Packing
    unmatched: tuple[bool, bool]
    """Whether rows of each side without a match are emitted."""
    before_us: int
    after_us: int
    bounded: bool
    """Whether rows match by event time too; else they wait for ever."""
    kept: pa.Schema
    """The columns of a waiting row: its input's number, and what stands in the common table."""
    upserts: pa.Schema
    output: pa.Schema
    columns: tuple[tuple[str, ...], tuple[str, ...]]
    """For each side, the kept columns that are emitted."""

    def update(self, batch: KeyedBatch) -> Update:
        """Pair new rows with all rows of the other side, and let go of those that waited enough."""
        late = self._late(batch)
        fresh = np.flatnonzero(~late)
        rows = WaitingRows.of(batch, fresh, self.kept.names, self.packing.event_time, self.bounded)
        keyless = self._keyless(batch)[rows.key]
        left, right = self._pairs(rows, keyless)
        over = self._over(batch, rows)
        tracked = np.where(rows.right, self.unmatched[RIGHT], self.unmatched[LEFT])
        before = self._matched_before(batch, rows, tracked)
        matched = before.copy()
        matched[left] = True
        matched[right] = True

        alone = np.flatnonzero(tracked & ~matched & (over | (keyless & rows.new)))
        lefts, rights = alone[~rows.right[alone]], alone[rows.right[alone]]
        output = self._output(
            batch,
            rows,
            np.concatenate([left, lefts, np.full(len(rights), _NO_ROW)]),
            np.concatenate([right, np.full(len(lefts), _NO_ROW), rights]),
        )
        stays = rows.new & ~keyless
        changed = ~rows.new & ~over & tracked & (matched != before)
        written = np.flatnonzero(stays | changed)
        gone = np.flatnonzero(over)
        return Update(
            output=output,
            upserts=self._upserts(batch, rows, written, matched),
            upsert_key=rows.key[written],
            drops=self._drops(batch, rows, gone),
            drop_key=rows.key[gone],
            late=late,
        )

    def _late(self, batch: KeyedBatch) -> Mask:
        """The rows of the batch that came too late, or have no event time."""
        late = np.zeros(batch.rows.num_rows, dtype=np.bool_)
        if not self.bounded:
            return late
        time_us, present = microseconds_of(batch.rows[self.packing.event_time])
        if batch.watermark_us is not None:
            late = time_us < batch.watermark_us
        return late if present is None else late | ~present

    def _keyless(self, batch: KeyedBatch) -> Mask:
        """The keys with a null in them, which are equal to no other."""
        keyless = np.zeros(batch.keys.num_rows, dtype=np.bool_)
        for column in batch.keys.columns:
            present = valid(whole(column, column.type))
            if present is not None:
                keyless |= ~present
        return keyless

    def _pairs(self, rows: "WaitingRows", keyless: Mask) -> tuple[Numbers, Numbers]:
        """All pairs in which at least one row is new."""
        right = np.flatnonzero(rows.right & ~keyless)
        new_left = np.flatnonzero(~rows.right & rows.new & ~keyless)
        old_left = np.flatnonzero(~rows.right & ~rows.new)
        found = []
        for mine, its in ((new_left, right), (old_left, right[rows.new[right]])):
            left, other = pairs_within(
                rows.key[mine],
                rows.time_us[mine],
                rows.key[its],
                rows.time_us[its],
                self.before_us,
                self.after_us,
            )
            found.append((mine[left], its[other]))
        (a, b), (c, d) = found
        return np.concatenate([a, c]), np.concatenate([b, d])

    def _over(self, batch: KeyedBatch, rows: "WaitingRows") -> Mask:
        """The waiting rows that no row can match any more."""
        over = np.zeros(len(rows.key), dtype=np.bool_)
        if self.bounded and batch.watermark_us is not None:
            over[: rows.old] = rows.time_us[: rows.old] + self._wait(rows)[: rows.old] < (
                batch.watermark_us
            )
        return over

    def _wait(self, rows: "WaitingRows") -> Numbers:
        """How much later than each row the last row may be that matches it."""
        return np.where(rows.right, self.before_us, self.after_us)

    def _matched_before(self, batch: KeyedBatch, rows: "WaitingRows", tracked: Mask) -> Mask:
        """The waiting rows that had a match in earlier batches. Where nobody asks, all count."""
        matched = ~tracked
        if any(self.unmatched) and rows.old:
            known = whole(batch.state[MATCHED], pa.bool_()).to_numpy(zero_copy_only=False)
            matched[: rows.old] |= known.astype(np.bool_)
        return matched

    def _output(
        self, batch: KeyedBatch, rows: "WaitingRows", left: Numbers, right: Numbers
    ) -> pa.Table:
        key = rows.key[np.where(left == _NO_ROW, right, left)]
        columns = list(batch.keys.take(pa.array(key)).columns)
        for number, names in ((left, self.columns[LEFT]), (right, self.columns[RIGHT])):
            index = pa.array(number, mask=number == _NO_ROW)
            columns += [rows.columns[name].take(index) for name in names]
        return pa.Table.from_arrays(columns, schema=self.output)

    def _upserts(
        self, batch: KeyedBatch, rows: "WaitingRows", written: Numbers, matched: Mask
    ) -> pa.Table:
        known = batch.state[NUMBER].to_numpy().astype(np.int64, copy=False)
        old, new = written[~rows.new[written]], written[rows.new[written]]
        numbers = np.concatenate(
            [
                known[old],
                numbers_after(rows.key[: rows.old], known, rows.key[new], batch.keys.num_rows),
            ]
        )
        index = pa.array(written)
        columns = list(batch.keys.take(pa.array(rows.key[written])).columns)
        columns += [rows.columns[name].take(index) for name in self.kept.names]
        columns.append(pa.array(numbers))
        if self.bounded:
            until_us = rows.time_us[written] + self._wait(rows)[written] + 1
            columns.append(times_of(until_us, self.upserts.field(UNTIL).type))
        if any(self.unmatched):
            columns.append(pa.array(matched[written]))
        return pa.Table.from_arrays(columns, schema=self.upserts)

    def _drops(self, batch: KeyedBatch, rows: "WaitingRows", gone: Numbers) -> pa.Table:
        keys = batch.keys.take(pa.array(rows.key[gone]))
        return keys.append_column(NUMBER, batch.state[NUMBER].take(pa.array(gone)))


@dataclass(frozen=True, slots=True)
class WaitingRows:
    """The rows in the state, then the new ones."""

    columns: dict[str, pa.Array]
    key: Numbers
    time_us: Numbers
    """All zero where rows match at any time."""
    right: Mask
    new: Mask
    old: int
    """How many are in the state."""

    @classmethod
    def of(
        cls,
        batch: KeyedBatch,
        fresh: Numbers,
        names: list[str],
        event_time: str | None,
        bounded: bool,
    ) -> "WaitingRows":
        """Put them together."""
        rows = batch.rows.select(names)
        if len(fresh) < rows.num_rows:
            rows = rows.take(pa.array(fresh))
        both = pa.concat_tables([batch.state.select(names).cast(rows.schema), rows])
        columns = {name: whole(both[name], both[name].type) for name in names}
        key = np.concatenate([batch.state_key, batch.row_key[fresh]])
        time_us = np.zeros(len(key), dtype=np.int64)
        if bounded and event_time is not None:
            time_us, _ = microseconds_of(columns[event_time])
        old = len(batch.state_key)
        right = columns[INPUT].to_numpy() == RIGHT
        return cls(columns, key, time_us, right, np.arange(len(key)) >= old, old)


@dataclass(frozen=True, slots=True)
class Join:
    """A keyed function of packed rows: the join of the two inputs of a packing."""

    packing: Packing
    how: How
    before_us: int | None
    """None: rows match at any time."""
    after_us: int | None
    delay: str
    suffix: str

    def identity(self) -> Identity:
        """Which rows match, and what is remembered of them.

        Another column may move others to other places of the state, so the columns count as well.
        """
        return {
            "function": "join",
            "how": self.how,
            "before_us": self.before_us,
            "after_us": self.after_us,
            "event_time": self.packing.event_time,
            "columns": list(self.packing.layout),
        }

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Fix what is kept of a row that waits, and the names of the columns that come out."""
        packing = self.packing
        bounded = self.before_us is not None
        outer = self.how != "inner"
        names = [name for name in packing.schema.names if name not in key]
        kept = pa.schema([packing.schema.field(name) for name in names])
        state = [*kept, pa.field(NUMBER, pa.int64())]
        if bounded:
            time = time_type(packing.schema.field(packing.event_time))
            state.append(pa.field(UNTIL, time))
        if outer:
            state.append(pa.field(MATCHED, pa.bool_()))
        keys = [packing.schema.field(name) for name in key]
        distinct_names([field.name for field in (*keys, *state)], "join")
        output, columns = self._output(packing, keys)
        unmatched = (self.how in ("left", "full"), self.how in ("right", "full"))
        bound = BoundJoin(
            packing,
            unmatched,
            self.before_us or 0,
            self.after_us or 0,
            bounded,
            kept,
            pa.schema([*keys, *state]),
            output,
            columns,
        )
        made = BoundKeyed(
            update=bound.update,
            state=pa.schema(state),
            output=output,
            within=NUMBER,
            identity=self.identity(),
        )
        if not bounded:
            return made
        return replace(
            made,
            due=UNTIL,
            event_time=packing.event_time,
            delay_us=delay_us(self.delay, "join"),
        )

    def _output(
        self, packing: Packing, keys: list[pa.Field]
    ) -> tuple[pa.Schema, tuple[tuple[str, ...], tuple[str, ...]]]:
        """The columns that are emitted, and where those of each side stand."""
        fields = list(keys)
        taken = {field.name for field in keys}
        places: list[tuple[str, ...]] = []
        for number in (LEFT, RIGHT):
            mine = []
            missing = self.how == "full" or self.how == ("right" if number == LEFT else "left")
            for field, place in zip(packing.inputs[number], packing.places[number], strict=True):
                if place in packing.key:
                    continue
                name = field.name
                if number == RIGHT and name in taken:
                    name += self.suffix
                taken.add(name)
                fields.append(field.with_name(name).with_nullable(field.nullable or missing))
                mine.append(place)
            places.append(tuple(mine))
        distinct_names([field.name for field in fields], "join")
        return pa.schema(fields), (places[0], places[1])


def join_of(
    inputs: tuple[pa.Schema, pa.Schema],
    keys: tuple[tuple[str, ...], tuple[str, ...]],
    *,
    how: str,
    within: str | tuple[str, str] | None,
    event_times: tuple[str, str],
    delay: str,
    suffix: str,
    ttl: str | None,
    what: str,
) -> Join:
    """Check what the user asks of a join."""
    check_how(how, what)
    kind: How = how  # type: ignore[assignment]
    if within is None:
        if how != "inner":
            raise AskedWrongly(
                f"{what}: how='{how}' needs within='10 minutes' or the like, because a row without "
                "a match is emitted when none can come any more"
            )
        packing = packing_of(inputs, keys, None, what)
        return Join(packing, kind, None, None, delay, suffix)
    if ttl is not None:
        raise AskedWrongly(
            f"{what}: leave ttl out; with within, rows are let go of when none can match them"
        )
    before, after = (within, within) if isinstance(within, str) else _two(within, what)
    packing = packing_of(inputs, keys, event_times, what)
    return Join(packing, kind, delay_us(before, what), delay_us(after, what), delay, suffix)


def _two(within: object, what: str) -> tuple[str, str]:
    if isinstance(within, tuple) and len(within) == 2:
        return within
    raise AskedWrongly(
        f"{what}: within={within!r}; give a duration such as '10 minutes', or two: how much "
        "earlier and how much later the other stream's row may be"
    )


def check_how(how: str, what: str) -> None:
    """Raise an error for an unknown kind of join."""
    if how not in get_args(How):
        raise AskedWrongly(f"{what}: unknown how='{how}'{nearest(how, get_args(How))}")
