"""The pairs of flights in a cell that are closer than the threshold.

The windows of all flights that end at a tick are closed in the same micro-batch, because an
operator has one watermark. So all places of a tick come in one micro-batch, and a cell is judged at
once: the state is always empty.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.apps.flights.sphere import Ints
from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.columns import Mask, column_of
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

PAIR = pa.schema(
    {"tick": pa.int64(), "flight": pa.int64(), "other": pa.int64(), "distance_m": pa.float64()}
)
"""Two flights, the one with the lower number first."""
PAIRS_AT_A_TIME = 1 << 20


@dataclass(frozen=True, slots=True)
class NearPairs:
    """The keyed function; the key is the cell."""

    near_m: int

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Check the columns of a place."""
        if key != ("cell",):
            raise AskedWrongly("near pairs are found in cells; give key='cell'")
        for name in ("tick", "flight", "home", "x", "y", "z"):
            column_of(rows, name, "near pairs")
        return BoundKeyed(
            update=self.update,
            state=pa.schema({"flights": pa.int64()}),
            output=PAIR,
            identity={"function": "near_pairs", "near_m": self.near_m},
        )

    def update(self, batch: KeyedBatch) -> Update:
        """Compare the flights that are in the same cell at the same tick."""
        rows = batch.rows
        tick, flight = rows["tick"].to_numpy(), rows["flight"].to_numpy()
        where = np.stack([rows[axis].to_numpy() for axis in "xyz"], axis=1)
        order = np.lexsort((flight, tick, batch.row_key))
        found = near(
            Grouped.of(batch.row_key[order], tick[order]),
            where[order],
            rows["home"].to_numpy()[order],
            self.near_m,
        )
        one, other = order[found[0]], order[found[1]]
        made = (tick[one], flight[one], flight[other], np.sqrt(found[2].astype(np.float64)))
        return Update(output=pa.table([pa.array(column) for column in made], schema=PAIR))


@dataclass(frozen=True, slots=True)
class Grouped:
    """Sorted rows, of which those with the same key and tick belong together."""

    behind: Ints
    """For each row, how many rows of its group come behind it."""

    @classmethod
    def of(cls, key: Ints, tick: Ints) -> "Grouped":
        """Rows that are sorted by key and tick."""
        count = len(key)
        begins = np.ones(count, dtype=np.bool_)
        begins[1:] = (key[1:] != key[:-1]) | (tick[1:] != tick[:-1])
        starts = np.append(np.flatnonzero(begins), count)
        ends = np.repeat(starts[1:], np.diff(starts))
        return cls(ends - 1 - np.arange(count))

    def pairs(self) -> Iterator[tuple[Ints, Ints]]:
        """All pairs of rows of a group, some at a time, so that crowded cells fit into memory."""
        done = np.concatenate([[0], np.cumsum(self.behind)])
        first = 0
        while first < len(self.behind):
            last = int(np.searchsorted(done, done[first] + PAIRS_AT_A_TIME, side="right")) - 1
            last = max(last, first + 1)
            one = np.repeat(np.arange(first, last), self.behind[first:last])
            nth = np.arange(done[first], done[last]) - done[one]
            yield one, one + 1 + nth
            first = last


def near(grouped: Grouped, where: Ints, home: Mask, near_m: int) -> tuple[Ints, Ints, Ints]:
    """The rows of close pairs, and the square of their distance. Two visitors are no pair here."""
    none = np.empty(0, dtype=np.int64)
    found = [(none, none, none)]
    for one, other in grouped.pairs():
        apart = where[one] - where[other]
        square = (apart * apart).sum(axis=1)
        close = np.flatnonzero((square < near_m * near_m) & (home[one] | home[other]))
        found.append((one[close], other[close], square[close]))
    one, other, square = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return one, other, square
