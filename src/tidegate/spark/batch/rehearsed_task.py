"""What runs in the place of an operator's task in a rehearsal: it loads the operator's function.

Loading it imports the modules that it needs, as its first real task would. The function is not
called. It could open a connection or count its calls, and a rehearsal must not be noticed outside.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from tidegate.spark.batch.descriptions import DESCRIPTION
from tidegate.spark.batch.worker import unpacked
from tidegate.spark.python_workers import hold_worker
from tidegate.spark.state.files import Durable


def load_and_hold(
    blocks: Iterator[pa.RecordBatch], stages: tuple[bytes, ...], checkpoints: tuple[Durable, ...]
) -> Iterator[pa.RecordBatch]:
    """Load operators into a worker and hold it, so that the next task gets another worker.

    It looks at the checkpoints as well, because the first connection to a store takes a while. The
    rows come back only where a checkpoint is not to be seen.
    """
    for stage in stages:
        unpacked(stage)
    seen = [_is_seen(one) for one in checkpoints]
    hold_worker()
    for block in blocks:
        if not all(seen):
            yield block


def _is_seen(checkpoint: Durable) -> bool:
    """Whether the description of a checkpoint, which its driver has written, is there."""
    try:
        return checkpoint.exists(DESCRIPTION)
    except Exception:  # whatever it is, the driver says that the checkpoint is not seen here
        return False


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
