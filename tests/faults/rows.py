"""The rows of the imitated source, and what a sequential run makes of them."""

from collections import Counter

import numpy as np
import pyarrow as pa

KEYS = 7


def source_rows(start: int, end: int) -> pa.Table:
    """The rows of a range of offsets; the same range always has the same rows."""
    number = np.arange(start, end, dtype=np.int64)
    return pa.table({"k": (number * 31 + number // 5) % KEYS, "v": number * 7 % 11})


def kept(start: int, end: int, batch_id: int, keep: float) -> np.ndarray:
    """Which rows of a range a batch keeps: a draw by row and batch, as real shedding draws."""
    number = np.arange(start, end, dtype=np.int64)
    draw = ((number + 1) * 2654435761 + batch_id * 40503) % 1000
    return draw < keep * 1000


def hashes(keys: np.ndarray) -> np.ndarray:
    """A hash of each key, as Spark's shuffle would use one."""
    mixed = (keys.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return mixed.view(np.int64)


class Sequential:
    """The truth: batches one after the other, in one process that never fails."""

    def __init__(self) -> None:
        self.totals: dict[int, tuple[int, int]] = {}
        self.offered = self.kept = 0
        self.seen: Counter[int] = Counter()
        """In how many batches each key occurred: what the second segment counts."""

    def batch(self, batch_id: int, start: int, end: int, keep: float) -> set[tuple[int, int, int]]:
        """Run a batch; the output is the new totals of its keys."""
        rows = source_rows(start, end).filter(pa.array(kept(start, end, batch_id, keep)))
        self.offered += end - start
        self.kept += rows.num_rows
        touched = set()
        for row in rows.to_pylist():
            count, total = self.totals.get(row["k"], (0, 0))
            self.totals[row["k"]] = (count + 1, total + row["v"])
            touched.add(row["k"])
        self.seen.update(touched)
        return {(key, *self.totals[key]) for key in touched}
