"""The plan of one micro-batch, fixed and written down before any of its work starts.

A replay reads the plan that the first try wrote, so it routes rows, sheds them and reads the clock
exactly as the first try did.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate.control.shards.route import Route
from tidegate.control.shedding.keep import KEEP_ALL, Keep
from tidegate.spark.state.files import Durable

_KEPT = 8


@dataclass(frozen=True, slots=True)
class OperatorPlan:
    """How many tasks an operator has in this micro-batch, and the task of each of its shards."""

    tasks: int
    route: Route = ()
    """The task of each shard; empty for a map operator."""

    def shards_of(self, task: int) -> list[int]:
        """The shards of one task."""
        return [shard for shard, owner in enumerate(self.route) if owner == task]


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """All that a micro-batch needs to be repeated."""

    batch_id: int
    at_us: int
    """When it was planned: the batch's own clock."""
    operators: Mapping[str, OperatorPlan] = field(default_factory=dict)
    keep: Keep = KEEP_ALL
    unique: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each source that names columns no two rows share: the columns its rows are drawn by."""


@dataclass(frozen=True, slots=True)
class Plans:
    """The plan files of one segment."""

    directory: Durable

    def read(self, batch_id: int) -> BatchPlan | None:
        """The plan of an earlier try, if there was one."""
        if not self.directory.exists(_name(batch_id)):
            return None
        document = self.directory.read_json(_name(batch_id))
        return BatchPlan(
            document["batch"],
            document["at_us"],
            {
                name: OperatorPlan(entry["tasks"], tuple(entry["route"]))
                for name, entry in document["operators"].items()
            },
            Keep(document.get("keep", 1.0), document.get("keep_by_class", {})),
            {name: tuple(columns) for name, columns in document.get("unique", {}).items()},
        )

    def write(self, plan: BatchPlan) -> None:
        """Fix the plan of a new micro-batch."""
        operators: dict[str, Any] = {
            name: {"tasks": entry.tasks, "route": list(entry.route)}
            for name, entry in plan.operators.items()
        }
        document = {
            "batch": plan.batch_id,
            "at_us": plan.at_us,
            "operators": operators,
            "keep": plan.keep.fraction,
            "keep_by_class": dict(plan.keep.by_class),
            "unique": {name: list(columns) for name, columns in plan.unique.items()},
        }
        self.directory.write_json(_name(plan.batch_id), document)
        if plan.batch_id >= _KEPT:
            self.directory.remove(_name(plan.batch_id - _KEPT))

    def tidy(self, until_batch: int) -> None:
        """At a start: remove plans of old batches that were left half written."""
        self.directory.sweep(self.directory.names(), until_batch)

    def newest(self) -> BatchPlan | None:
        """The last plan that was written: a restart continues with its tasks and routes."""
        names = [name for name in self.directory.names() if name.endswith(".json")]
        return self.read(int(names[-1].removesuffix(".json"))) if names else None


def _name(batch_id: int) -> str:
    return f"{batch_id:010d}.json"
