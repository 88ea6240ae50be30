"""The attribute statistics: how often each level of an attribute came with each class in a leaf.

This is what makes the tree vertical: an instance is taken apart, and each of its attributes goes to
a task of its own. When the model asks, every attribute answers with its best split.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.apps.vht.messages import (
    ASK,
    FORGET,
    GAIN_SCALE,
    HIGH,
    INSTANCE,
    LOW,
    TO_MODEL_SCHEMA,
    answer_rows,
)
from tidegate.apps.vht.packed import CLASSES, LEVELS, MOST_ATTRIBUTES, Ints, level_of
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.functions.columns import column_of
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

SLICE = "slot long, kind long, cell long, nth long"
"""An attribute of an instance. A slot is an attribute of a leaf, a cell a level and a class."""
CELLS = LEVELS * CLASSES
_COUNTS = pa.list_(pa.int64())
STATE = pa.schema([("counts", _COUNTS)])

Floats = npt.NDArray[np.float64]


def slices(rows: pa.Table, attributes: int) -> Derived:
    """A map from what the model sends to one row for each attribute."""
    parents = np.repeat(np.arange(rows.num_rows), attributes)
    attribute = np.tile(np.arange(attributes), rows.num_rows)
    leaf, kind, levels, label, nth = (
        rows[name].to_numpy()[parents] for name in ("leaf", "kind", "levels", "label", "nth")
    )
    made = pa.table(
        {
            "slot": leaf * MOST_ATTRIBUTES + attribute,
            "kind": kind,
            "cell": level_of(levels, attribute) * CLASSES + label,
            "nth": nth,
        }
    )
    return Derived(made, parents)


@dataclass(frozen=True, slots=True)
class AttributeStatistics:
    """The keyed function; the key is the slot."""

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Check the columns of a slice."""
        for name in ("slot", "kind", "cell", "nth"):
            column_of(rows, name, "statistics")
        return BoundKeyed(
            update=counted,
            state=STATE,
            output=TO_MODEL_SCHEMA,
            identity={"function": "vht_statistics", "levels": LEVELS, "classes": CLASSES},
        )


def counted(batch: KeyedBatch) -> Update:
    """Add the instances, and answer with the counts up to the one after which the leaf asked."""
    kind, nth, key = batch.rows["kind"].to_numpy(), batch.rows["nth"].to_numpy(), batch.row_key
    slots = batch.keys.num_rows
    counts = np.zeros((slots, CELLS), dtype=np.int64)
    counts[batch.state_key] = counts_of(batch.state)
    asks = np.flatnonzero(kind == ASK)
    ask_at = np.full(slots, np.iinfo(np.int64).max)
    ask_at[key[asks]] = nth[asks]
    cell = key * CELLS + batch.rows["cell"].to_numpy()
    is_instance = kind == INSTANCE
    early = is_instance & (nth <= ask_at[key])
    counts += _counted(cell[early], slots)
    slot = batch.keys.column(0).to_numpy()
    answers = _answers(slot[key[asks]], counts[key[asks]])
    counts += _counted(cell[is_instance & ~early], slots)
    forgotten = np.zeros(slots, dtype=np.bool_)
    forgotten[key[kind == FORGET]] = True
    kept = np.zeros(slots, dtype=np.bool_)
    kept[key[is_instance]] = True
    upsert_key = np.flatnonzero(kept & ~forgotten)
    drop_key = np.flatnonzero(forgotten & ~batch.is_new())
    return Update(
        output=answers,
        upserts=pa.table(
            {
                "slot": slot[upsert_key],
                "counts": list_column(counts[upsert_key]),
            }
        ),
        upsert_key=upsert_key,
        drops=batch.keys.take(pa.array(drop_key)),
        drop_key=drop_key,
    )


def counts_of(state: pa.Table) -> Ints:
    """The counts of each state row, cell by cell."""
    values = state["counts"].combine_chunks().flatten()
    found: Ints = values.to_numpy().reshape(-1, CELLS)
    return found


def list_column(matrix: Ints) -> pa.Array:
    """A list for each row of a matrix."""
    ends = np.arange(len(matrix) + 1, dtype=np.int32) * matrix.shape[1]
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(matrix.ravel()), type=_COUNTS)


def best_splits(counts: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """For each row of counts: its best cut and gain, and the classes on the low and high side.

    The gain is the information in bits that the split gives about the class, in parts of
    `GAIN_SCALE`. Of equal cuts the lowest is taken.
    """
    table = counts.reshape(-1, LEVELS, CLASSES)
    below = np.cumsum(table, axis=1)[:, :-1]
    total = table.sum(axis=1)
    above = total[:, None] - below
    left = _bits(below) + _bits(above)
    gain = (_bits(total)[:, None] - left) / np.maximum(total.sum(axis=1), 1)[:, None]
    scaled = np.rint(gain * GAIN_SCALE).astype(np.int64)
    best = scaled.argmax(axis=1)
    row = np.arange(len(best))
    return best + 1, scaled[row, best], below[row, best], above[row, best]


def _bits(counts: Ints) -> Floats:
    """How many bits tell the classes of so many instances: n log n less the sum of c log c."""
    sums: Floats = _n_log_n(counts.sum(axis=-1)) - _n_log_n(counts).sum(axis=-1)
    return sums


def _n_log_n(counts: Ints) -> Floats:
    exact = counts.astype(np.float64)
    return exact * np.log2(np.maximum(exact, 1.0))


def _answers(slot: Ints, counts: Ints) -> pa.Table:
    cut, gain, low, high = best_splits(counts)
    leaf, attribute = np.divmod(slot, MOST_ATTRIBUTES)
    sides = {**dict(zip(LOW, low.T, strict=True)), **dict(zip(HIGH, high.T, strict=True))}
    return answer_rows(
        {
            "leaf": leaf,
            "attribute": attribute,
            "cut": cut,
            "gain": gain,
            **{name: np.ascontiguousarray(column) for name, column in sides.items()},
        }
    )


def _counted(cell: Ints, slots: int) -> Ints:
    return np.bincount(cell, minlength=slots * CELLS).reshape(slots, CELLS)
