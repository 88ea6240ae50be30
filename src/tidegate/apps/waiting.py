"""Operators that cost waiting time instead of CPU time, as a call to a slow service does.

Even on a machine with few cores, such operators get faster with more tasks, because waiting needs
no core. Demos and benchmarks of elasticity use them, and say so.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, KeyedFunction, Update


def waiting_map(wait_s_per_row: float) -> Callable[[pa.Table], pa.Table]:
    """A map that returns its rows unchanged, after a wait proportional to their number."""

    def enrich(rows: pa.Table) -> pa.Table:
        time.sleep(rows.num_rows * wait_s_per_row)
        return rows

    return enrich


@dataclass(frozen=True, slots=True)
class Waiting:
    """A keyed function that waits for each row before it does its work."""

    inner: KeyedFunction
    wait_s_per_row: float

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """The inner function's schemas, with the wait in front of its update."""
        bound = self.inner.bind(rows, key)
        wait_s, update = self.wait_s_per_row, bound.update

        def waited(batch: KeyedBatch) -> Update:
            time.sleep(batch.rows.num_rows * wait_s)
            return update(batch)

        return replace(bound, update=waited)
