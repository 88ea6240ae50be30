"""What runs in the place of an operator's task in a rehearsal: it loads the operator's function.

Loading it imports the modules that it needs, as its first real task would. The function is not
called. It could open a connection or count its calls, and a rehearsal must not be noticed outside.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from tidegate.spark.batch.worker import unpacked
from tidegate.spark.python_workers import hold_worker


def load_and_hold(
    blocks: Iterator[pa.RecordBatch], stages: tuple[bytes, ...]
) -> Iterator[pa.RecordBatch]:
    """Load operators into a worker and hold it, so that the next task gets another worker."""
    for stage in stages:
        unpacked(stage)
    hold_worker()
    yield from blocks


@dataclass(frozen=True, slots=True)
class RehearsedTask:
    """Takes whatever rows it is given, and returns none."""

    stage: bytes
    schema: pa.Schema
    """The columns that leave it."""

    def __call__(self, blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For Spark's mapInArrow."""
        unpacked(self.stage)
        for _ in blocks:
            pass
        yield from self.schema.empty_table().to_batches()

    def anchored(self, anchor: pa.Table, rows: pa.Table) -> pa.Table:
        """For Spark's cogroup of (anchor, rows)."""
        unpacked(self.stage)
        return self.schema.empty_table()
