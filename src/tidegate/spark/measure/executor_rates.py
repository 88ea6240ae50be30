"""How fast each executor runs an operator, so that rows and shards can be divided by it.

Speeds are kept by executor and not by task. Spark runs a task anywhere unless its place is kept,
and the tasks of one executor are equally fast but for chance.
"""

from collections.abc import Sequence

from tidegate.pipelines.graph import Keyed, Map
from tidegate.spark.batch.plan import OperatorPlan
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.result import BatchResult

_FADING = 0.5
"""The weight that an executor's earlier speed keeps with each batch."""

_REMEMBERED = 256
"""Executors that are remembered, at least: those that ran tasks last."""


class ExecutorRates:
    """The speeds of one operator; none for maps that run where their rows are."""

    def __init__(self, node: Map | Keyed) -> None:
        self._name = node.name
        self._keyed = isinstance(node, Keyed)
        self._has_tasks = node.tasks is not None or self._keyed
        self._rates: dict[str, float] = {}
        """Rows per second of one task at work, by executor."""
        self._last: tuple[float, ...] = ()
        self._places: tuple[str, ...] = ()
        self._entry: OperatorPlan | None = None
        """What the last speeds were measured with."""

    def task_rates(
        self, results: Sequence[BatchResult], entry: OperatorPlan | None
    ) -> tuple[float, ...]:
        """The speed of each task, by its executor in the last batch with these tasks and slots.

        Empty where one executor runs all, and until every task of a map has had rows. A task of a
        keyed operator may have no keys for long; it has the speed 0 until its executor is known.
        """
        if not self._has_tasks or entry is None:
            return ()
        for result in results:
            told = result.of(self._name)
            reports = [report for report in told if report.rows_in]
            self._learn(reports)
            places = {report.task: report.executor for report in (told if self._keyed else reports)}
            if result.plan.operators.get(self._name) != entry or not reports:
                continue
            if len(set(places.values())) < 2:
                self._last = ()  # there is nobody to be faster than
            elif set(places) == set(range(entry.tasks)):
                self._entry = entry
                self._places = tuple(places[task] for task in range(entry.tasks))
                self._last = tuple(self._rates.get(place, 0.0) for place in self._places)
        return self._last if self._entry == entry else ()

    def executors(self, entry: OperatorPlan | None) -> tuple[str, ...]:
        """The executor of each task, where `task_rates` has speeds for this plan."""
        return self._places if self._last and self._entry == entry else ()

    def _learn(self, reports: Sequence[TaskReport]) -> None:
        rows: dict[str, int] = {}
        busy_s: dict[str, float] = {}
        for report in reports:
            rows[report.executor] = rows.get(report.executor, 0) + report.rows_in
            busy_s[report.executor] = busy_s.get(report.executor, 0.0) + report.busy_s
        for executor, count in rows.items():
            rate = count / max(busy_s[executor], 1e-9)
            old = self._rates.get(executor, rate)
            # The newest last. Executors come and go for as long as a pipeline runs.
            self._rates.pop(executor, None)
            self._rates[executor] = rate + _FADING * (old - rate)
        for gone in list(self._rates)[: -max(len(rows), _REMEMBERED)]:
            del self._rates[gone]
