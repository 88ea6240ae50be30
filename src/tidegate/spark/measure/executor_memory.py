"""How full the memory of each executor was, from what its tasks reported.

An executor has a Python worker for each of its cores, and they are full at the same time. What the
cluster manager leaves to Python is known from Spark's settings on YARN; elsewhere workers see what
limits them (`spark/batch/worker_memory.py`). What executors of one host have left, they share.
"""

from collections.abc import Iterable

from tidegate.control.measurement import ExecutorMeasurement
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.worker_memory import WorkerMemory


def executor_memory(
    reports: Iterable[TaskReport], limit_bytes: int | None = None
) -> tuple[ExecutorMeasurement, ...]:
    """The executors that told of their memory, by name; `limit_bytes` is what settings allow."""
    workers: dict[str, dict[int, WorkerMemory]] = {}
    state: dict[str, int] = {}
    parts: dict[str, int] = {}
    for report in reports:
        if report.memory is None:
            continue
        state[report.executor] = state.get(report.executor, 0) + report.state_bytes
        parts[report.executor] = max(report.part + 1, parts.get(report.executor, 1))
        seen = workers.setdefault(report.executor, {})
        known = seen.get(report.memory.process)
        if known is None or report.memory.bytes > known.bytes:
            seen[report.memory.process] = report.memory
    hosts = [_host(name) for name in workers]
    return tuple(
        _measured(
            name,
            list(seen.values()),
            hosts.count(_host(name)),
            limit_bytes,
            state[name],
            parts[name],
        )
        for name, seen in sorted(workers.items())
    )


def _measured(
    name: str,
    workers: list[WorkerMemory],
    on_host: int,
    limit_bytes: int | None,
    state_bytes: int,
    parts: int,
) -> ExecutorMeasurement:
    used = sum(one.bytes for one in workers)
    rooms = [one.room_bytes for one in workers if one.room_bytes is not None]
    limits = [used + min(rooms) // on_host] if rooms else []
    if limit_bytes is not None:
        limits.append(limit_bytes)
    return ExecutorMeasurement(
        name=name,
        memory_bytes=used,
        base_bytes=sum(one.base_bytes for one in workers),
        limit_bytes=min(limits, default=None),
        parts=parts,
        state_bytes=state_bytes,
    )


def _host(name: str) -> str:
    return name.partition(":")[0]
