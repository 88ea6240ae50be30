"""Combines rows per key, and per interval of event time, before they are sent to their tasks.

The combined rows of a key come from consecutive rows of one partition, and follow one another in
the order in which keys appear in it. So where the order of rows matters, it is kept.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate.pipelines.functions.columns import Mask, Numbers, whole
from tidegate.pipelines.functions.merges import Merges
from tidegate.pipelines.functions.times import microseconds_of, time_type, times_of
from tidegate.pipelines.keyed import ROWS, KeyedBatch, Update

if TYPE_CHECKING:
    from tidegate.pipelines.functions.fold import FoldCombining

TIME = "__time"
"""The newest event time of the rows that a combined row stands for."""


@dataclass(frozen=True, slots=True)
class RowCombiner:
    """Combines the rows of each group: a key, or a key and a pane.

    A pane is an interval of event time whose rows lie in the same windows.
    """

    of: "FoldCombining"
    key: tuple[str, ...]
    rows: pa.Schema
    """The columns of combined rows: the key, `TIME` where there is an event time, the fold's,
    `ROWS`."""
    update: Callable[[KeyedBatch], Update]
    """The keyed function, given combined rows."""
    event_time: str | None = None
    pane_us: int | None = None

    @classmethod
    def of_keys(
        cls,
        of: "FoldCombining",
        update: Callable[[KeyedBatch], Update],
        rows: pa.Schema,
        key: tuple[str, ...],
    ) -> "RowCombiner":
        """Combine rows per key."""
        return cls(of, key, _schema(of, rows, key, None), update)

    @classmethod
    def of_panes(
        cls,
        of: "FoldCombining",
        update: Callable[[KeyedBatch], Update],
        rows: pa.Schema,
        key: tuple[str, ...],
        event_time: str,
        pane_us: int,
    ) -> "RowCombiner":
        """Combine rows per key and pane."""
        return cls(of, key, _schema(of, rows, key, event_time), update, event_time, pane_us)

    @property
    def time(self) -> str | None:
        """The column of combined rows with their event time; None for a function without."""
        return None if self.event_time is None else TIME

    @property
    def needs(self) -> tuple[str, ...]:
        """The columns of the rows that it reads."""
        time = () if self.event_time is None else (self.event_time,)
        return tuple(dict.fromkeys((*self.key, *time, *self.of.needs)))

    @property
    def most(self) -> int:
        """The most combined rows of a group."""
        return self.of.most

    @property
    def any_order(self) -> bool:
        """Whether the order of the rows plays no part at all."""
        return self.of.merges == Merges.IN_ANY_ORDER

    def combine(self, rows: pa.Table, until_us: int) -> pa.Table:
        """The rows of each key as few rows, in the order in which keys appear.

        Rows with events after `until_us` do not count for the watermark. They are rare: nothing is
        combined beside them.
        """
        times: tuple[Numbers, Mask | None] | None = None
        if self.event_time is not None:
            times = microseconds_of(rows[self.event_time])
        ahead = times is not None and _any_after(times, until_us)
        if ahead or not self.of.exact(rows):
            group = first = np.arange(rows.num_rows)
        else:
            group, first = self._groups(rows, times)
        count = len(first)
        of, columns = self.of.combine(rows, group, count)
        stands_for = np.bincount(group, minlength=count)
        if of is not None:
            stands_for = _shared_out(stands_for, of)
            first = first[of]
        parts = [*rows.select(list(self.key)).take(pa.array(first)).columns]
        if times is not None:
            newest = _newest(times, group, count, self.rows.field(TIME).type)
            parts.append(newest if of is None else newest.take(pa.array(of)))
        return pa.Table.from_arrays([*parts, *columns, pa.array(stands_for)], schema=self.rows)

    def _groups(
        self, rows: pa.Table, times: tuple[Numbers, Mask | None] | None
    ) -> tuple[Numbers, Numbers]:
        """The group of each row, numbered as they appear, and the first row of each group."""
        columns = [whole(rows.column(name), rows.field(name).type) for name in self.key]
        if times is not None and self.pane_us is not None:
            time_us, present = times
            columns.append(
                pa.array(time_us // self.pane_us, mask=None if present is None else ~present)
            )
        group: Numbers | None = None
        for column in columns:
            codes, distinct = _coded(column)
            group = codes if group is None else _coded(pa.array(group * distinct + codes))[0]
        assert group is not None
        highest = np.maximum.accumulate(group)
        first = np.flatnonzero(np.diff(highest, prepend=-1))
        return group, first


def panes_us(every_us: int, size_us: int) -> int:
    """The longest interval whose rows always lie in the same windows."""
    return int(np.gcd(every_us, size_us))


def _schema(
    of: "FoldCombining", rows: pa.Schema, key: tuple[str, ...], event_time: str | None
) -> pa.Schema:
    time = () if event_time is None else (pa.field(TIME, time_type(rows.field(event_time))),)
    keys = (rows.field(name) for name in key)
    return pa.schema([*keys, *time, *of.fields, pa.field(ROWS, pa.int64())])


def _coded(column: pa.Array) -> tuple[Numbers, int]:
    """The distinct values numbered as they appear, null among them, and how many there are."""
    coded = column.dictionary_encode(null_encoding="encode")
    return coded.indices.to_numpy().astype(np.int64), len(coded.dictionary)


def _any_after(times: tuple[Numbers, Mask | None], until_us: int) -> bool:
    time_us, present = times
    after = time_us > until_us
    return bool((after if present is None else after & present).any())


def _newest(
    times: tuple[Numbers, Mask | None], group: Numbers, count: int, type_: pa.DataType
) -> pa.Array:
    """The newest event of each group; null for a group of rows without one."""
    time_us, present = times
    newest = np.full(count, np.iinfo(np.int64).min)
    there = np.zeros(count, dtype=np.bool_)
    if present is not None:
        time_us, group = time_us[present], group[present]
    np.maximum.at(newest, group, time_us)
    there[group] = True
    if there.all():
        return times_of(newest, type_)
    return pa.array(newest, mask=~there).view(type_)


def _shared_out(rows: Numbers, of: Numbers) -> Numbers:
    """For combined rows with the group of each: their first one stands for all that are left."""
    shares = np.ones(len(of), dtype=np.int64)
    groups, lead = np.unique(of, return_index=True)
    shares[lead] += rows[groups] - np.bincount(of, minlength=len(rows))[groups]
    return shares
