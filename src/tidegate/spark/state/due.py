"""Finds the state rows whose time has come, without looking at the others.

A piece of a state file knows the earliest and the latest due time of its rows, so most pieces are
not opened for this at all. Of those that are, each process sorts the due times once, and keeps them
with the open piece. From then on it reads only the rows that are due. A file never changes, so the
order stays right until the file is merged into another one.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.pipelines.keyed import BoundKeyed
from tidegate.spark.state.layer import Layer
from tidegate.spark.state.layout import DEAD, NEVER_US, SLOT, Slots, shard_of_slot
from tidegate.spark.state.lookup import Reach, Reads, due_us
from tidegate.spark.state.version import Version

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DueTimes:
    """The span of time (after, until] whose state rows are due in a micro-batch."""

    after_us: int | None
    """The clock of the micro-batch before, by which earlier rows were handed in; None at first."""
    until_us: int

    @classmethod
    def of(
        cls, bound: BoundKeyed, version: Version, watermark_us: int | None, at_us: int
    ) -> "DueTimes | None":
        """The span of this batch; None if no state row can be due."""
        if bound.due is None:
            return None
        if bound.clock == "processing":
            return cls(version.at_us, at_us)
        return None if watermark_us is None else cls(version.handed_us, watermark_us)

    def mask(self, at_us: Numbers) -> NDArray[np.bool_]:
        """Which of these times lie in the span."""
        inside: NDArray[np.bool_] = at_us <= self.until_us
        if self.after_us is not None:
            inside &= at_us > self.after_us
        return inside


@dataclass(frozen=True, slots=True)
class DueOrder:
    """The rows of a piece that have a due time, in its order."""

    at_us: Numbers
    row: NDArray[np.int32]

    @classmethod
    def of(cls, layer: Layer, due: str) -> "DueOrder":
        """Sort the rows of a piece; dropped rows and those without a time are left out."""
        if layer.through:  # the column may be newer than the piece
            column = layer.rows(np.arange(layer.table.num_rows)).column(due).combine_chunks()
        else:
            column = layer.table.column(due)
        at_us = due_us(column, layer.table.column(DEAD).to_numpy(zero_copy_only=False))
        row = np.flatnonzero(at_us < NEVER_US)
        order = row[np.argsort(at_us[row], kind="stable")]
        return cls(at_us[order], order.astype(np.int32))

    def between(self, times: DueTimes) -> Numbers:
        """The rows that are due in a span of time, in the order of the piece."""
        begin = 0
        if times.after_us is not None:
            begin = int(np.searchsorted(self.at_us, times.after_us, side="right"))
        end = int(np.searchsorted(self.at_us, times.until_us, side="right"))
        return np.sort(self.row[begin:end]).astype(np.int64)


def due_keys(
    reaches: list[Reach], due: str, times: DueTimes, key: list[str], reads: Reads
) -> tuple[Slots, pa.Table] | None:
    """The slots and keys of rows that are due; newer rows may hide some of them."""
    found: list[pa.Table] = []
    for reach in reaches:
        if not reach.piece.may_be_due(times.after_us, times.until_us):
            continue
        rows = _order_of(reach.layer, due, reads).between(times)
        if not len(rows):
            continue
        rows = rows[reach.valid[shard_of_slot(reach.layer.slots[rows])]]
        reads.due_rows += len(rows)
        if len(rows):
            found.append(reach.layer.rows(rows).select([SLOT, *key]))
    if not found:
        return None
    table = pa.concat_tables(found)
    return table.column(SLOT).to_numpy(), table.select(key)


def _order_of(layer: Layer, due: str, reads: Reads) -> DueOrder:
    """The order of an open piece, made when it is first asked for."""
    known = layer.orders.get(due)
    if known is None:
        known = layer.orders[due] = DueOrder.of(layer, due)
        reads.ordered_rows += layer.table.num_rows
    order: DueOrder = known
    return order
