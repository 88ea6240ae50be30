"""The plan of one micro-batch, fixed and written down before any of its work starts.

A replay reads the plan that the first try wrote, so it routes rows, sheds them and reads the clock
exactly as the first try did.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidegate.columns import IntColumn
from tidegate.control.shards.route import Route
from tidegate.control.shedding.keep import KEEP_ALL, Keep
from tidegate.spark.batch.kept_names import KeptNames
from tidegate.spark.state.files import Durable, Missing

_KEPT = 8


@dataclass(frozen=True, slots=True)
class OperatorPlan:
    """How many tasks an operator has in this micro-batch, and the task of each of its shards."""

    tasks: int
    route: Route = ()
    """The task of each shard. Of a map: the task of each slot that rows are dealt to in turn, and
    empty where they are dealt to the tasks themselves."""
    parts: int = 1
    """In how many parts, one after the other, each task works on its rows, because all of them at
    once might not fit into its memory. Only of keyed operators: a part has some of the shards."""
    combine: bool = False
    """Whether its rows are combined before they are sent to its tasks (`combine_task`)."""

    @property
    def part_of(self) -> Sequence[int]:
        """The part of each shard: a task's shards take turns."""
        order = np.argsort(self.route, kind="stable")
        before = np.searchsorted(np.asarray(self.route)[order], self.route)
        turn = np.empty(len(order), np.int64)
        turn[order] = np.arange(len(order))
        return IntColumn((turn - before) % self.parts)

    def shards_of(self, task: int) -> list[int]:
        """The shards of one task."""
        found: list[int] = np.flatnonzero(np.asarray(self.route) == task).tolist()
        return found


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
    """The plan files of one segment.

    Each owner of the checkpoint writes plans under names of its own, so that a driver that was
    paused and wakes up cannot change the plan of a batch that its successor runs.
    """

    directory: Durable
    mark: str = ""
    """The owner's mark in the names of the plans that it writes (`Epoch.mark`)."""
    names: KeptNames = field(default_factory=KeptNames)
    """The names under which it writes operators."""

    def read(self, batch_id: int, mark: str | None = None) -> BatchPlan | None:
        """The plan that an owner wrote for a batch, by default this one; None if it wrote none."""
        name = _name(batch_id, self.mark if mark is None else mark)
        try:
            return _plan(self.directory.read_json(name), self.names)
        except Missing:
            return None

    def earlier(self, batch_id: int, marks: Iterable[str]) -> BatchPlan | None:
        """The plan of an earlier try: the newest owner before this one that wrote a plan.

        `marks` are the earlier owners, newest first. Files are asked for by name, because a listing
        that lags behind must not make a replay differ from its first try. Only then is the
        directory listed: the claim of an owner may have been removed long ago.
        """
        found = (self.read(batch_id, mark) for mark in (*marks, ""))
        by_name = next((plan for plan in found if plan is not None), None)
        return self.newest(batch_id) if by_name is None else by_name

    def write(self, plan: BatchPlan) -> None:
        """Fix the plan of a micro-batch."""
        operators: dict[str, Any] = {
            name: {"tasks": entry.tasks, "route": entry.route, **_others(entry)}
            for name, entry in self.names.to_kept(plan.operators).items()
        }
        document = {
            "batch": plan.batch_id,
            "at_us": plan.at_us,
            "operators": operators,
            "keep": plan.keep.fraction,
            "keep_by_class": dict(plan.keep.by_class),
            "unique": {name: list(columns) for name, columns in plan.unique.items()},
        }
        self.directory.write_json(_name(plan.batch_id, self.mark), document)

    def clean(self, batch_id: int) -> None:
        """Remove the plans of batches long before this one, and what was left half written."""
        self.directory.sweep((), batch_id - _KEPT)

    def newest(self, batch_id: int | None = None) -> BatchPlan | None:
        """The last plan that is listed, of all batches or of one.

        A restart continues with its tasks and routes.
        """
        names = [
            name
            for name in self.directory.names()
            if name.endswith(".json") and (batch_id is None or int(name[:10]) == batch_id)
        ]
        try:
            return _plan(self.directory.read_json(names[-1]), self.names) if names else None
        except Missing:  # a running pipeline has removed it meanwhile
            return None


def _plan(document: dict[str, Any], names: KeptNames) -> BatchPlan:
    return BatchPlan(
        document["batch"],
        document["at_us"],
        {
            name: OperatorPlan(
                entry["tasks"],
                IntColumn(entry["route"]),
                entry.get("parts", 1),
                entry.get("combine", False),
            )
            for name, entry in names.from_kept(document["operators"]).items()
        },
        Keep(document.get("keep", 1.0), document.get("keep_by_class", {})),
        {name: tuple(columns) for name, columns in document.get("unique", {}).items()},
    )


def _others(entry: OperatorPlan) -> dict[str, Any]:
    """What is left out where it is as always: an older release can then read the plan."""
    parts = {"parts": entry.parts} if entry.parts > 1 else {}
    return {**parts, "combine": True} if entry.combine else {**parts}


def _name(batch_id: int, mark: str) -> str:
    return f"{batch_id:010d}-{mark}.json" if mark else f"{batch_id:010d}.json"
