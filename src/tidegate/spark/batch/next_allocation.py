"""The allocation of the next micro-batch: tasks and routes per operator, and how much is kept.

The control loop and the user may change it at any time. A micro-batch takes a snapshot of it into
its plan, so a change holds from the next batch on and never within one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock

import numpy as np

from tidegate.columns import IntColumn
from tidegate.control.shards.route import Route, even_route, rerouted, rescaled
from tidegate.control.shedding.keep import KEEP_ALL, Keep
from tidegate.errors import AskedWrongly, nearest
from tidegate.models.flow.deal import SLOTS, slot_route
from tidegate.pipelines.graph import Keyed, Map, Node, Source
from tidegate.pipelines.shedding import ShedClass
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan


class NextAllocation:
    """What is wished for; safe to change from any thread."""

    def __init__(self, nodes: tuple[Node, ...], tasks: int) -> None:
        self._lock = Lock()
        self._nodes = {
            node.name: node
            for node in nodes
            if isinstance(node, Keyed) or (isinstance(node, Map) and node.tasks is not None)
        }
        self._wanted = {name: _first(node, tasks) for name, node in self._nodes.items()}
        self._previews: dict[str, None] = {}
        self._parts: dict[str, int] = {}
        self._keep = KEEP_ALL
        self._worths: dict[str, ShedClass] = {}
        for node in nodes:
            if isinstance(node, Source) and node.shedding is not None:
                for name in node.shedding.names:
                    worth = node.shedding.classes[name]
                    # Two sources may declare a class: it keeps the higher of the two floors.
                    if name not in self._worths or worth.floor > self._worths[name].floor:
                        self._worths[name] = worth

    def adopt(self, plan: BatchPlan) -> None:
        """Continue with the tasks and routes of an earlier run, where they still fit.

        The deal of a map is not continued. It belongs to the speeds of executors that are gone, and
        another policy could not undo it. Neither are the parts of tasks. A batch that is replayed
        has its own plan.
        """
        with self._lock:
            for name, entry in plan.operators.items():
                node = self._nodes.get(name)
                if node is None or _outside(node, entry.tasks) is not None:
                    continue
                if isinstance(node, Keyed) and len(entry.route) != node.shards:
                    continue
                route = entry.route if isinstance(node, Keyed) else ()
                self._wanted[name] = replace(entry, route=route, parts=1)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of rows that its sources declare."""
        return tuple(self._worths)

    def shed(self, keep: Keep) -> None:
        """Keep this much of the sources' rows from the next micro-batch on.

        No class goes below the floor it was promised. Classes that no source declares are ignored.
        """
        with self._lock:
            self._keep = keep.promised(self._worths)

    def keep(self) -> Keep:
        """What the next micro-batch is to keep."""
        with self._lock:
            return self._keep

    def rescale(self, operator: str, tasks: int) -> None:
        """Another number of tasks from the next micro-batch on; as few shards as possible move."""
        node = self._node(operator)
        wrong = _outside(node, tasks)
        if wrong is not None:
            raise AskedWrongly(wrong)
        with self._lock:
            old = self._wanted[operator]
            route = rescaled(old.route, tasks) if isinstance(node, Keyed) else ()
            self._wanted[operator] = replace(old, tasks=tasks, route=route)

    def combine(self, operator: str, begins: bool) -> None:
        """Combine the rows of an operator before they are sent to its tasks, or no longer.

        From the next micro-batch on.
        """
        with self._lock:
            self._wanted[operator] = replace(self._wanted[operator], combine=begins)

    def reroute(self, operator: str, moves: Mapping[int, int]) -> None:
        """Move single shards to other tasks from the next micro-batch on."""
        node = self._node(operator)
        if not isinstance(node, Keyed):
            raise AskedWrongly(f"operator '{operator}' has no shards: only keyed operators do")
        with self._lock:
            old = self._wanted[operator]
            self._wanted[operator] = replace(old, route=rerouted(old.route, moves, old.tasks))

    def deal(self, operator: str, shares: Sequence[float]) -> None:
        """Deal the rows of a map to its tasks by these shares from the next micro-batch on.

        Its tasks then stay on their executors. Without shares rows are dealt in turn, and tasks run
        anywhere.
        """
        node = self._node(operator)
        if not isinstance(node, Map):
            raise AskedWrongly(f"rows of operator '{operator}' follow their keys: only maps deal")
        with self._lock:
            tasks = self._wanted[operator].tasks
            if len(shares) not in (0, tasks):
                raise AskedWrongly(
                    f"{len(shares)} shares for the {tasks} tasks of operator '{operator}'; give one"
                    " for each task, or none"
                )
            route = slot_route(shares, SLOTS * tasks) if len(shares) else ()
            self._wanted[operator] = OperatorPlan(tasks, route)

    def in_parts(self, operator: str, parts: int) -> None:
        """Let each task work on its rows in so many parts from the next micro-batch on."""
        node = self._node(operator)
        if not isinstance(node, Keyed):
            raise AskedWrongly(
                f"operator '{operator}' is a map, which gets its rows in blocks anyway: only keyed"
                " operators are processed in parts"
            )
        if parts < 1:
            raise AskedWrongly(
                f"{parts} parts of operator '{operator}' are not possible; give at least 1"
            )
        with self._lock:
            self._parts[operator] = parts

    def parts(self) -> dict[str, int]:
        """The operators whose tasks work in more than one part, with the number of parts."""
        with self._lock:
            return {name: parts for name, parts in self._parts.items() if parts > 1}

    def preview(self, operator: str, begins: bool) -> None:
        """Count the rows of an operator before they are routed, from the next micro-batch on.

        Or no longer, unless it `begins`.
        """
        with self._lock:
            if begins:
                self._previews[operator] = None
            else:
                self._previews.pop(operator, None)

    def previews(self) -> tuple[str, ...]:
        """The operators whose rows are counted before they are routed."""
        with self._lock:
            return tuple(self._previews)

    def routed(self, operator: str, entry: OperatorPlan, moves: Mapping[int, int]) -> OperatorPlan:
        """The tasks and the route of an operator whose rows were counted.

        The route holds from this micro-batch on, unless another one is wished for meanwhile.
        """
        route = rerouted(entry.route, moves, entry.tasks)
        found = OperatorPlan(entry.tasks, route, combine=entry.combine)
        with self._lock:
            if self._wanted[operator] == replace(entry, parts=1):
                self._wanted[operator] = found
        return replace(found, parts=entry.parts)

    def relabel(self, operator: str, tasks: int, old: Route, new: Route) -> None:
        """Renumber an operator's tasks: changes asked for under the old numbers are translated."""
        number = np.arange(tasks)
        number[np.asarray(old, np.int64)] = new
        with self._lock:
            entry = self._wanted[operator]
            if entry.tasks == tasks:  # a rescale meanwhile has its own numbers
                route = IntColumn(number[np.asarray(entry.route, np.int64)])
                self._wanted[operator] = replace(entry, route=route)

    def snapshot(self) -> dict[str, OperatorPlan]:
        """Tasks and routes as they are wished for now."""
        with self._lock:
            return dict(self._wanted)

    def followed(self, follow: Callable[[str, OperatorPlan], Route]) -> dict[str, OperatorPlan]:
        """The snapshot, with tasks numbered so that shards stay on the executors that have them.

        `follow` gives the route with such numbers; they hold from now on.
        """
        wished = self.snapshot()
        for name, entry in wished.items():
            if not entry.route:
                continue
            route = follow(name, entry)
            if route != entry.route:
                wished[name] = replace(entry, route=route)
                self.relabel(name, entry.tasks, entry.route, route)
        return wished

    def plan(
        self,
        batch_id: int,
        at_us: int,
        operators: Mapping[str, OperatorPlan],
        *,
        gathered_s: float,
        offered: Mapping[str, float],
        unique: Mapping[str, tuple[str, ...]],
    ) -> BatchPlan:
        """The plan of a new micro-batch with these operators.

        Its rows arrived over `gathered_s` seconds (zero: not known). A batch that gathered for
        longer than the span that `Keep` is meant for keeps as many rows as were meant, not as large
        a share of more rows; the least important classes give way first, judged by the rows of each
        class that were `offered` to the batch before.
        """
        keep = self.keep().of_batch(gathered_s, offered, self._worths)
        parts = self.parts()
        operators = {
            name: replace(entry, parts=parts.get(name, 1)) for name, entry in operators.items()
        }
        return BatchPlan(batch_id, at_us, operators, keep, unique)

    def completed(self, plan: BatchPlan) -> BatchPlan:
        """An earlier try's plan, with operators that joined the pipeline since it was written."""
        wished = self.snapshot()
        missing = wished.keys() - plan.operators.keys()
        if not missing:
            return plan
        added = {name: wished[name] for name in missing}
        return replace(plan, operators={**plan.operators, **added})

    def __contains__(self, operator: object) -> bool:
        return operator in self._nodes

    def _node(self, operator: str) -> Keyed | Map:
        node = self._nodes.get(operator)
        if node is None:
            raise AskedWrongly(
                f"there is no operator '{operator}' with tasks of its own"
                f"{nearest(operator, self._nodes)}"
            )
        return node


def _first(node: Keyed | Map, tasks: int) -> OperatorPlan:
    bounds = node.tasks
    count = tasks if bounds is None else bounds.clamp(tasks)
    if isinstance(node, Keyed):
        return OperatorPlan(count, even_route(node.shards, count))
    return OperatorPlan(count)


def _outside(node: Keyed | Map, tasks: int) -> str | None:
    bounds = node.tasks
    if bounds is None or bounds.clamp(tasks) == tasks:
        return None
    most = "" if bounds.most is None else f" to {bounds.most}"
    return f"operator '{node.name}' may have {bounds.least}{most} tasks, not {tasks}"
