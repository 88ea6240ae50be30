"""What tasks report to the driver, counted once however often a task is tried.

Reports travel by a Spark accumulator. Spark drops what failed tries add, but a task that runs again
after its output was lost adds a second time. A report therefore names the batch, the task and the
part of it that it is about, and the last such report counts.
"""

import logging
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark import AccumulatorParam

from tidegate.control.learning.sojourn import Stamps
from tidegate.spark.batch.worker_memory import WorkerMemory
from tidegate.spark.state.version import TaskChange

_log = logging.getLogger("tidegate.batch")


def combining(operator: str) -> str:
    """The name under which tasks report that combine rows in front of an operator."""
    return f"{operator} (combining)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShedCounts:
    """Rows of a source that one task was offered and kept."""

    classes: tuple[tuple[int, int], ...]
    """(offered, kept) of each class; one entry when there are no classes."""
    groups: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    """Rows offered and kept per key group."""
    stamps: Stamps | None = None
    """When the rows arrived, those that were shed included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """One task of one operator (or of a source that sheds) in one micro-batch."""

    batch_id: int
    operator: str
    task: int
    part: int = 0
    """Tells apart several runs of a stage inside one Spark task."""
    rows_in: int
    rows_out: int
    busy_s: float
    """Time in the operator: the user's function, and reading and writing its state."""
    function_s: float
    """Time in the user's function alone."""
    executor: str
    """Where it ran: host and working directory, so that two executors of a host differ."""
    started_s: float
    shard_rows: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    """Shards that got rows, and how many."""
    shard_bytes: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    """Shards that have state, and how many bytes of it, rows of older files included."""
    change: TaskChange | None = None
    own_reads: int = 0
    """Shards whose state came from this node."""
    durable_reads: int = 0
    """Shards whose state was fetched from the durable part."""
    durable_bytes: int = 0
    """Bytes that were fetched because the node did not have them."""
    node: str = ""
    """The node whose cache it used (`worker.node_of`); empty for a stage without state."""
    newest_us: Mapping[str, int] = field(default_factory=dict)
    """The newest event of each source that its rows came from, for operators with event time."""
    ahead_rows: int = 0
    """Rows whose event lies so far in the future that the watermark does not follow it."""
    late_rows: int = 0
    """Rows that came after their window or session had closed."""
    skipped_rows: int = 0
    """Rows that the function could not process and that were left out."""
    skipped_error: str | None = None
    """What the function raised on the first of them."""
    stamps: Stamps | None = None
    """When its rows arrived, for operators that read a source with an arrival column."""
    sampled: int = 1
    """N_m: `stamps` has one row in so many."""
    born: NDArray[np.int64] | None = None
    """Traces of inputs that it saw right behind their source; None where rows carry no traces."""
    left: NDArray[np.int64] | None = None
    """Traces of the rows that left it, each once, where it tells them in the place of a column."""
    shed: ShedCounts | None = None
    """Rows offered and kept, when the report is about a source that sheds."""
    class_rows: tuple[int, ...] = ()
    """Rows of each class, for the first operator behind a source that has classes."""
    bytes_in: int = 0
    """The size of the rows that it was given, in Arrow's format."""
    combined_rows: int | None = None
    """Of a keyed operator: the combined rows that it was given in the place of `rows_in`. Where
    nothing was combined, about how many there would have been; None: its rows cannot be."""
    waited_s: float | None = None
    """How long it waited for them; None where that is not known, or includes other operators."""
    memory: WorkerMemory | None = None
    """Of its Python process while it had rows, state and output; None where that is not told."""

    @property
    def state_bytes(self) -> int:
        """Bytes of state of this task's shards."""
        return 0 if self.shard_bytes is None else int(self.shard_bytes[1].sum())


class ReportParam(AccumulatorParam[list[TaskReport]]):
    """Collects reports in one list."""

    def zero(self, value: list[TaskReport]) -> list[TaskReport]:
        """No report."""
        return []

    def addInPlace(  # noqa: N802 (Spark's name)
        self, value1: list[TaskReport], value2: list[TaskReport]
    ) -> list[TaskReport]:
        """Both lists, one after the other."""
        value1.extend(value2)
        return value1


class Reports:
    """The driver's side: one accumulator for the whole run of a segment."""

    def __init__(self, context: Any) -> None:
        self.accumulator = context.accumulator([], ReportParam())
        without_tracebacks(getattr(context, "_accumulatorServer", None))

    def so_far(self, batch_id: int) -> list[TaskReport]:
        """The reports of a batch that still runs; `drain` will return them again."""
        # Spark's thread only appends to this list, so a copy of it is consistent.
        return once(
            report for report in list(self.accumulator.value) if report.batch_id == batch_id
        )

    def drain(self, batch_id: int) -> list[TaskReport]:
        """The reports of a batch, one per task and part; those of other batches are dropped."""
        taken = self.accumulator.value
        self.accumulator.value = []
        return once(report for report in taken if report.batch_id == batch_id)


def without_tracebacks(server: Any) -> None:
    """Have PySpark's accumulator server log a closed connection instead of printing a traceback.

    Spark closes the connection when a query is stopped at the wrong moment, and opens another.
    """
    if server is None or getattr(server, "logs_closed_connections", False):
        return
    plain = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        error = sys.exception()
        if isinstance(error, EOFError | ConnectionError):
            _log.debug("Spark closed its connection for accumulators: %r", error)
        else:
            plain(request, address)

    server.handle_error = handle_error
    server.logs_closed_connections = True


def once(reports: Iterable[TaskReport]) -> list[TaskReport]:
    """The last report of each (operator, task, part)."""
    last = {(report.operator, report.task, report.part): report for report in reports}
    return list(last.values())


def newest_of(reports: Iterable[TaskReport]) -> dict[str, int]:
    """The newest event of each source over all tasks of an operator."""
    newest: dict[str, int] = {}
    for report in reports:
        for source, us in report.newest_us.items():
            newest[source] = max(us, newest.get(source, us))
    return newest
