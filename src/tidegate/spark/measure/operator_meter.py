"""What the tasks of a segment's operators reported, as one measurement per operator and tick."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tidegate.columns import IntColumn
from tidegate.control.learning.told_rate import ToldRate
from tidegate.control.measurement import OperatorMeasurement
from tidegate.pipelines.graph import Keyed, Map, Segment, TaskBounds
from tidegate.pipelines.walks import feeders, host, mixed_readers, timed_readers
from tidegate.spark.batch.plan import OperatorPlan
from tidegate.spark.batch.preview import previewable
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.measure.executor_rates import ExecutorRates
from tidegate.spark.measure.operator_variability import OperatorVariability
from tidegate.spark.measure.segment_batches import FinishedBatch


class OperatorMeter:
    """Measures the operators of one segment."""

    def __init__(
        self,
        segment: Segment,
        window_s: float = 1.0,
        segments: Sequence[Segment] = (),
    ) -> None:
        self._segment = segment
        self._operators = [node for node in segment.nodes if isinstance(node, Map | Keyed)]
        all_segments = segments or (segment,)
        """Those of the whole pipeline, to look through channels; without them, its own."""
        self._feeders = {node.name: feeders(all_segments, node.name) for node in self._operators}
        self._hosts = {node.name: host(segment, node) for node in self._operators}
        self._previewable = previewable(segment)
        self._seen_tasks: dict[str, int] = {}
        """How many tasks of each operator reported in the last batches that it ran in."""
        self._nodes: dict[str, tuple[str, ...]] = {}
        """The node of each task of a keyed operator in the last batch."""
        self._arrived = {node.name: ToldRate(window_s) for node in self._operators}
        """lambda_i: the rows of a batch arrived while the batch before it ran."""
        self._speeds = {node.name: ExecutorRates(node) for node in self._operators}
        readers = timed_readers(segment) - mixed_readers(segment)
        self._varying = {
            node.name: OperatorVariability(node.name, node.name in readers)
            for node in self._operators
        }

    def measure(
        self,
        finished: Sequence[FinishedBatch],
        plan: Mapping[str, OperatorPlan],
        interval_s: float,
        idle_s: float | None = None,
        previews: Collection[str] = (),
        parts: Mapping[str, int] | None = None,
    ) -> list[OperatorMeasurement]:
        """All its operators, by the batches that finished within the last `interval_s`.

        `plan` has the tasks and routes of the next batch. `idle_s` is the present time if there is
        nothing to do for the segment. `previews` are the operators whose rows are counted before
        they are routed, and `parts` has those whose tasks work in several parts.
        """
        return [
            replace(
                self._measured(node, finished, plan, interval_s, idle_s),
                preview=node.name in previews if node.name in self._previewable else None,
                preview_s=_preview_s(finished, node.name),
                parts=(parts or {}).get(node.name, 1),
            )
            for node in self._operators
        ]

    def forget_times(self) -> None:
        """Forget when batches began, because the wall clock was set back."""
        for arrived in self._arrived.values():
            arrived.forget_times()

    def _arrival_rate(
        self, name: str, finished: Sequence[FinishedBatch], interval_s: float, idle_s: float | None
    ) -> float:
        arrived = self._arrived[name]
        for batch in finished:
            rows = sum(report.rows_in for report in batch.result.of(name))
            arrived.add(rows * batch.fresh, batch.since_s, batch.began_s)
        if idle_s is not None:
            arrived.nothing(idle_s)
        return arrived.tell(interval_s, quiet=idle_s is not None)

    def _measured(
        self,
        node: Map | Keyed,
        finished: Sequence[FinishedBatch],
        plan: Mapping[str, OperatorPlan],
        interval_s: float,
        idle_s: float | None,
    ) -> OperatorMeasurement:
        results = [batch.result for batch in finished]
        reports = [report for result in results for report in result.of(node.name)]
        if results and isinstance(node, Keyed):
            self._nodes[node.name] = nodes_of(results[-1].of(node.name))
        if reports:
            self._seen_tasks[node.name] = len({report.task for report in reports})
        entry = plan.get(node.name)
        tasks = entry.tasks if entry is not None else self._seen_tasks.get(node.name, 1)
        task_rates = self._speeds[node.name].task_rates(results, entry)
        dealt = isinstance(node, Map) and entry is not None and bool(entry.route)
        # A map without tasks of its own runs where its rows are: no other number is possible.
        bounds = node.tasks or TaskBounds(tasks, tasks)
        nodes = self._nodes.get(node.name, ())
        varying = self._varying[node.name]
        for batch in finished:
            varying.add(batch)
        rows = sum(report.rows_in for report in reports)
        in_front = [report for result in results for report in result.in_front_of(node.name)]
        busy_s = sum(report.busy_s for report in (*in_front, *reports))
        return OperatorMeasurement(
            name=node.name,
            segment=self._segment.name,
            inside=self._hosts[node.name],
            arrival_rate=self._arrival_rate(node.name, finished, interval_s, idle_s),
            service_rate=rows / busy_s if busy_s > 0 else 0.0,
            arrival_scv=varying.arrivals.value,
            arrival_scv_error=varying.arrivals.error,
            service_scv=varying.service.value,
            service_scv_error=varying.service.error,
            tasks=tasks,
            imbalance=_imbalance(results, node.name, task_rates if dealt else ()),
            state_bytes=_state_bytes(results, node.name),
            rows=rows,
            busy_s=busy_s,
            least_tasks=bounds.least,
            most_tasks=bounds.most,
            route=entry.route if entry is not None else (),
            shard_rows=_shard_rows(node, reports),
            nodes=nodes if len(nodes) == tasks else (),
            durable_bytes=sum(report.durable_bytes for report in reports),
            late_rows=sum(report.late_rows for report in reports),
            skipped_rows=sum(report.skipped_rows for report in reports),
            inputs=self._feeders[node.name],
            rows_out=sum(report.rows_out for report in reports),
            task_rates=task_rates,
            executors=self._speeds[node.name].executors(entry),
            dealt=dealt,
            combined_rows=_combined_rows(results, node.name),
            **_received(reports, rows),
        )


def nodes_of(reports: Sequence[TaskReport]) -> tuple[str, ...]:
    """The node of each task of one batch; empty unless every task has told its node."""
    told = {report.task: report.node for report in reports}
    if set(told) != set(range(len(told))) or not all(told.values()):
        return ()
    return tuple(told[task] for task in range(len(told)))


def _imbalance(results: Sequence[BatchResult], operator: str, task_rates: Sequence[float]) -> float:
    """delta: rows of the fullest task over the mean, over the tick; combined rows where they are.

    Where rows were dealt by the tasks' speeds, it is the time that they take.
    """
    load: dict[int, float] = {}
    tasks = 1
    for result in results:
        tasks = max(tasks, len(result.of(operator)))
        for report in result.of(operator):
            speed = task_rates[report.task] if report.task < len(task_rates) else 1.0
            rows = report.rows_in
            if report.combined_rows is not None and result.combines(operator):
                rows = report.combined_rows
            load[report.task] = load.get(report.task, 0.0) + rows / speed
    total = sum(load.values())
    return max(load.values()) * tasks / total if total else 1.0


def _combined_rows(results: Sequence[BatchResult], operator: str) -> int | None:
    """What its tasks were given in the place of its rows; None unless some batch combined them."""
    if not any(result.combines(operator) for result in results):
        return None
    return sum(
        (report.combined_rows or 0) if result.combines(operator) else report.rows_in
        for result in results
        for report in result.of(operator)
    )


def _preview_s(finished: Sequence[FinishedBatch], operator: str) -> float | None:
    """Mean time of previews; None if there was none."""
    told = (batch.result.previews_s.get(operator) for batch in finished)
    took_s = [one for one in told if one is not None]
    return sum(took_s) / len(took_s) if took_s else None


def _received(reports: Sequence[TaskReport], rows: int) -> dict[str, Any]:
    """How large rows were, what a task received in a batch, and how long it waited for it."""
    total = sum(report.bytes_in for report in reports)
    waits = [report.waited_s for report in reports if report.waited_s is not None]
    told = [report.bytes_in for report in reports if report.waited_s is not None]
    return {
        "row_bytes": total / rows if rows else 0.0,
        "task_bytes": sum(told) / len(told) if told else 0.0,
        "task_wait_s": sum(waits) / len(waits) if waits else None,
    }


def _state_bytes(results: Sequence[BatchResult], operator: str) -> int:
    """State after the last batch."""
    return sum(report.state_bytes for report in results[-1].of(operator)) if results else 0


def _shard_rows(node: Map | Keyed, reports: Sequence[TaskReport]) -> Sequence[int]:
    """Rows of each shard over the tick; empty for a map."""
    if not isinstance(node, Keyed):
        return ()
    total = np.zeros(node.shards, dtype=np.int64)
    for report in reports:
        if report.shard_rows is not None:
            total[report.shard_rows[0]] += report.shard_rows[1]
    return IntColumn(total)
