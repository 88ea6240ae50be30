"""What all our tasks share inside Spark's Python workers: columns, fixed parts, their names."""

import os
import pickle
import socket
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext, cloudpickle

from tidegate.spark.batch.report import TaskReport
from tidegate.spark.state.node_cache import NodeCache

HASH = "__hash"
"""The hash of a row's key: its shard follows from it."""
ORDER = "__order"
"""The place of a row in its source, given before a shuffle mixes the rows."""
TASK = "__task"
"""The task that a row is routed to."""
PARTED = "__parted"
"""The part of its task that a row belongs to, where tasks work in parts; -1 in a row that only
names the task."""
ORIGIN = "__origin"
"""The source that a row came from, by number: only where an operator with event time reads several
(`pipelines.origins`)."""
TRACE = "__trace"
"""The traces of the sampled inputs that a row was derived from: only on the way from a source to a
channel (`pipelines.traces`)."""
OURS = (HASH, ORDER, TASK, PARTED, ORIGIN, TRACE)


def packed(stage: object) -> bytes:
    """The fixed part of an operator, with the user's function in it, as it travels to workers."""
    content: bytes = cloudpickle.dumps(stage)  # type: ignore[no-untyped-call]
    return content


@lru_cache(maxsize=256)
def unpacked(content: bytes) -> Any:
    """What `packed` made, unpacked once per worker process and not once per batch."""
    return pickle.loads(content)


def place() -> str:
    """Host and working directory: two executors of one host differ in the directory."""
    return f"{socket.gethostname()}:{Path.cwd()}"


def node_of(cache: NodeCache) -> str:
    """Who shares this cache: the whole host, or with a directory of its own one executor."""
    return socket.gethostname() if cache.shared else place()


def without_ours(table: pa.Table) -> pa.Table:
    """The rows as the user knows them, without the columns that we added."""
    return table.drop_columns([name for name in OURS if name in table.column_names])


class ReceivedBlocks:
    """The blocks of rows that Spark gives a task, their size, and how long the task waits for them.

    The wait is for the shuffle, the sort behind it and the way into Python, as far as the task has
    nothing else to do meanwhile.
    """

    def __init__(self, blocks: Iterator[pa.RecordBatch]) -> None:
        self._blocks = blocks
        self.bytes = 0
        self.waited_s = 0.0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            before = time.perf_counter()
            block = next(self._blocks, None)
            self.waited_s += time.perf_counter() - before
            if block is None:
                return
            self.bytes += block.nbytes
            yield block


_parts: dict[tuple[int, str], int] = {}


def part_of_task(operator: str) -> tuple[int, int]:
    """The number of the Spark task, and how often this operator has run inside it before.

    A user's sink may coalesce partitions, and then one Spark task runs an operator several times.
    """
    context = TaskContext.get()
    if context is None:
        return os.getpid(), 0
    mark = (context.taskAttemptId(), operator)
    if len(_parts) > 4096:
        _parts.clear()
    part = _parts.get(mark, 0)
    _parts[mark] = part + 1
    return context.partitionId(), part


def part_report(
    batch_id: int, operator: str, rows_in: int, rows_out: int, busy_s: float, started_s: float
) -> TaskReport:
    """The report of one run of a stateless stage inside a Spark task."""
    task, part = part_of_task(operator)
    return TaskReport(
        batch_id=batch_id,
        operator=operator,
        task=task,
        part=part,
        rows_in=rows_in,
        rows_out=rows_out,
        busy_s=busy_s,
        function_s=0.0,
        executor=place(),
        started_s=started_s,
    )
