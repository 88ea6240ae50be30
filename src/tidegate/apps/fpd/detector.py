"""The detector: a record for each itemset, with its occurrences and whether it is maximal.

An itemset is a maximal frequent pattern (MFP) if it occurs in the window at least `threshold` times
and no itemset that contains it does (DRS V-A.2). What contains a pattern occurs at most as often,
so it is enough to look at the itemsets with one word more: if none of them is frequent, no larger
one is. Each record therefore counts how many of those are frequent (`above`). An itemset that
becomes frequent, or ceases to be, tells those that lack one of its words by the loop: +1 or -1.

All that a record takes in are sums, so neither the order of the rows nor the cuts between
micro-batches change what it is when all rows and all messages have been taken in. In between an
itemset may pass for maximal until the message of a larger one arrives, as in the paper.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.apps.fpd.itemsets import Ints, subsets_by_one
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, Update

_STATE = pa.schema({"count": pa.int64(), "above": pa.int64(), "maximal": pa.bool_()})
_OUTPUT = pa.schema(
    {
        "itemset": pa.int64(),
        "frequent": pa.int32(),
        "maximal": pa.int32(),
        "count": pa.int64(),
        "at_us": pa.int64(),
    }
)


@dataclass(frozen=True, slots=True)
class Detector:
    """A keyed function of candidates and messages; it emits a row for each itemset that changed.

    In a row that it emits, `frequent` and `maximal` are 1 for what came to be, -1 for what ceased
    to be, and 0 for no change. `at_us` is the time of the micro-batch: it orders the changes of an
    itemset, as a later batch has a later time.
    """

    threshold: int

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """Fix the schemas."""
        return BoundKeyed(
            update=self.update,
            state=_STATE,
            output=_OUTPUT,
            identity={"function": "detect", "threshold": self.threshold},
        )

    def update(self, batch: KeyedBatch) -> Update:
        """Add what the rows bring to the records of their itemsets."""
        before, above_before = _of_state(batch, "count"), _of_state(batch, "above")
        count = before + _of_rows(batch, "count")
        above = above_before + _of_rows(batch, "above")
        was_frequent, is_frequent = before >= self.threshold, count >= self.threshold
        was_maximal = was_frequent & (above_before == 0)
        is_maximal = is_frequent & (above == 0)
        known = ~batch.is_new()
        # An itemset that is nowhere in the window is forgotten, so the state is bounded by it. A
        # message about a larger one may still be on its way; then the record waits for it.
        gone = (count == 0) & (above == 0)
        drop = np.flatnonzero(gone & known)
        keep = np.flatnonzero(~gone & ((count != before) | (above != above_before)))
        changed = np.flatnonzero((was_frequent != is_frequent) | (was_maximal != is_maximal))
        itemset = batch.keys.column(0)
        return Update(
            output=pa.table(
                {
                    "itemset": itemset.take(pa.array(changed)),
                    "frequent": _change(was_frequent, is_frequent)[changed],
                    "maximal": _change(was_maximal, is_maximal)[changed],
                    "count": count[changed],
                    "at_us": np.full(len(changed), batch.at_us, dtype=np.int64),
                },
                schema=_OUTPUT,
            ),
            upserts=pa.Table.from_arrays(
                [
                    itemset.take(pa.array(keep)),
                    pa.array(count[keep]),
                    pa.array(above[keep]),
                    pa.array(is_maximal[keep]),
                ],
                names=[*batch.keys.column_names, *_STATE.names],
            ),
            upsert_key=keep,
            drops=batch.keys.take(pa.array(drop)),
            drop_key=drop,
        )


def messages(rows: pa.Table) -> Derived:
    """A map from changed itemsets to messages for those that lack one word: the loop's rows."""
    frequent = rows["frequent"].to_numpy()
    told = np.flatnonzero(frequent)
    subsets, places = subsets_by_one(rows["itemset"].to_numpy()[told])
    parents = told[places]
    made = pa.table(
        {
            "itemset": subsets,
            "count": np.zeros(len(subsets), dtype=np.int32),
            "above": frequent[parents].astype(np.int32),
        }
    )
    return Derived(made, parents)


def news(rows: pa.Table) -> Derived:
    """A map that keeps what the reporter is told: itemsets whose being maximal changed."""
    kept = rows["maximal"].to_numpy() != 0
    return Derived(rows.filter(pa.array(kept)), kept)


def _of_state(batch: KeyedBatch, column: str) -> Ints:
    """A column of the state for each key; 0 where there is none yet."""
    found = np.zeros(batch.keys.num_rows, dtype=np.int64)
    found[batch.state_key] = batch.state[column].to_numpy()
    return found


def _of_rows(batch: KeyedBatch, column: str) -> Ints:
    """The sum of a column of the rows for each key."""
    values = batch.rows[column].to_numpy()
    sums = np.bincount(batch.row_key, weights=values, minlength=batch.keys.num_rows)
    return np.rint(sums).astype(np.int64)


def _change(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    return after.astype(np.int32) - before.astype(np.int32)
