"""What the tasks of a segment's operators reported, as one measurement per operator and tick."""

from collections.abc import Mapping, Sequence

import numpy as np

from tidegate.control.learning.told_rate import ToldRate
from tidegate.control.measurement import OperatorMeasurement
from tidegate.pipelines.graph import Keyed, Map, Segment, TaskBounds
from tidegate.pipelines.walks import host, mixed_readers, timed_readers
from tidegate.spark.batch.plan import OperatorPlan
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.measure.operator_variability import OperatorVariability
from tidegate.spark.measure.segment_batches import FinishedBatch


class OperatorMeter:
    """Measures the operators of one segment."""

    def __init__(self, segment: Segment, window_s: float = 1.0) -> None:
        self._segment = segment
        self._operators = [node for node in segment.nodes if isinstance(node, Map | Keyed)]
        self._hosts = {node.name: host(segment, node) for node in self._operators}
        self._seen_tasks: dict[str, int] = {}
        """How many tasks of each operator reported in the last batches that it ran in."""
        self._nodes: dict[str, tuple[str, ...]] = {}
        """The node of each task of a keyed operator in the last batch."""
        self._arrived = {node.name: ToldRate(window_s) for node in self._operators}
        """lambda_i: the rows of a batch arrived while the batch before it ran."""
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
    ) -> list[OperatorMeasurement]:
        """All its operators, by the batches that finished within the last `interval_s`.

        `plan` has the tasks and routes of the next batch. `idle_s` is the present time if there is
        nothing to do for the segment.
        """
        return [
            self._measured(node, finished, plan, interval_s, idle_s) for node in self._operators
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
        # A map without tasks of its own runs where its rows are: no other number is possible.
        bounds = node.tasks or TaskBounds(tasks, tasks)
        nodes = self._nodes.get(node.name, ())
        varying = self._varying[node.name]
        for batch in finished:
            varying.add(batch)
        rows = sum(report.rows_in for report in reports)
        busy_s = sum(report.busy_s for report in reports)
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
            imbalance=_imbalance(results, node.name),
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
        )


def nodes_of(reports: Sequence[TaskReport]) -> tuple[str, ...]:
    """The node of each task of one batch; empty unless every task has told its node."""
    told = {report.task: report.node for report in reports}
    if set(told) != set(range(len(told))) or not all(told.values()):
        return ()
    return tuple(told[task] for task in range(len(told)))


def _imbalance(results: Sequence[BatchResult], operator: str) -> float:
    """delta: rows of the fullest task over the mean, over the tick."""
    rows: dict[int, int] = {}
    tasks = 1
    for result in results:
        tasks = max(tasks, len(result.of(operator)))
        for report in result.of(operator):
            rows[report.task] = rows.get(report.task, 0) + report.rows_in
    total = sum(rows.values())
    return max(rows.values()) * tasks / total if total else 1.0


def _state_bytes(results: Sequence[BatchResult], operator: str) -> int:
    """State after the last batch."""
    return sum(report.state_bytes for report in results[-1].of(operator)) if results else 0


def _shard_rows(node: Map | Keyed, reports: Sequence[TaskReport]) -> tuple[int, ...]:
    """Rows of each shard over the tick; empty for a map."""
    if not isinstance(node, Keyed):
        return ()
    total = np.zeros(node.shards, dtype=np.int64)
    for report in reports:
        if report.shard_rows is not None:
            total[report.shard_rows[0]] += report.shard_rows[1]
    return tuple(total.tolist())
