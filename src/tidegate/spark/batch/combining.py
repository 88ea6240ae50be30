"""Turns combining on and off, operator by operator, by what the tasks of each batch reported.

The allocation of the next batch has it then, and its plan after that.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tidegate.control.shards.combine import CombineChoice
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.plan import BatchPlan
from tidegate.spark.batch.report import TaskReport

_log = logging.getLogger("tidegate.batch")


@dataclass(slots=True)
class Combining:
    """Watches the operators of a segment whose rows can be combined."""

    pipeline: str
    allocation: NextAllocation
    choices: dict[str, CombineChoice] = field(default_factory=dict)
    """By operator; empty where nothing is to be chosen."""

    @classmethod
    def of(cls, pipeline: str, allocation: NextAllocation, operators: Iterable[str]) -> "Combining":
        """One that begins with what the allocation has."""
        now = allocation.snapshot()
        choices = {name: CombineChoice(now[name].combine) for name in operators}
        return cls(pipeline, allocation, choices)

    def look(self, plan: BatchPlan, reports: Sequence[TaskReport]) -> None:
        """See a batch that has run."""
        for name, choice in self.choices.items():
            own = [report for report in reports if report.operator == name]
            if any(report.combined_rows is None for report in own):
                continue
            rows = by_task(own, lambda report: report.rows_in)
            left = by_task(own, lambda report: report.combined_rows or 0)
            begins = choice.observe(rows, left)
            if begins == plan.operators[name].combine:
                continue
            self.allocation.combine(name, begins)
            _log.info(
                "pipeline '%s': the rows of '%s' are %s before they are sent to its tasks: of %s "
                "rows of the last batch %s are left",
                self.pipeline,
                name,
                "combined" if begins else "no longer combined",
                f"{sum(rows):,}",
                f"{sum(left):,}",
            )


def by_task(reports: Sequence[TaskReport], count: Callable[[TaskReport], int]) -> list[int]:
    """Something counted for each task, which may have worked in parts."""
    found: dict[int, int] = {}
    for report in reports:
        found[report.task] = found.get(report.task, 0) + count(report)
    return list(found.values())
