"""What the next micro-batch should look like; anybody may change it at any time."""

from collections.abc import Mapping
from threading import Lock
from typing import TypeAlias

from tidegate.control.shards.route import Route, even_route, rerouted, rescaled
from tidegate.control.shedding.classes import keep_by_class
from tidegate.control.shedding.next_batch import keep_over
from tidegate.errors import AskedWrongly, nearest
from tidegate.pipelines.graph import Keyed, Map, Node, Source
from tidegate.pipelines.shedding import ShedClass
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan

Keep: TypeAlias = tuple[float, Mapping[str, float]]


class Allocation:
    """Tasks and routes per operator, and what to keep. A micro-batch takes a snapshot of it."""

    def __init__(self, nodes: tuple[Node, ...], tasks: int) -> None:
        self._lock = Lock()
        self._nodes = {
            node.name: node
            for node in nodes
            if isinstance(node, Keyed) or (isinstance(node, Map) and node.tasks is not None)
        }
        self._wanted = {name: _first(node, tasks) for name, node in self._nodes.items()}
        self._keep: Keep = (1.0, {})
        self._span_s: float | None = None
        self._floors: dict[str, float] = {}
        self._worths: dict[str, ShedClass] = {}
        for node in nodes:
            if isinstance(node, Source) and node.shedding is not None:
                for name in node.shedding.names:
                    self._worths[name] = node.shedding.classes[name]
                    floor = self._worths[name].floor
                    self._floors[name] = max(floor, self._floors.get(name, 0.0))

    def adopt(self, plan: BatchPlan) -> None:
        """Go on with the tasks and routes of an earlier run, as far as they still fit."""
        with self._lock:
            for name, entry in plan.operators.items():
                node = self._nodes.get(name)
                if node is None or _outside(node, entry.tasks) is not None:
                    continue
                if isinstance(node, Keyed) and len(entry.route) != node.shards:
                    continue
                self._wanted[name] = entry

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of its sources' rows."""
        return tuple(self._floors)

    def shed(self, keep: float, by_class: Mapping[str, float], span_s: float | None = None) -> None:
        """Keep this fraction of the sources' rows from the next micro-batch on.

        No class goes below the floor that it was promised, whoever asks. With `span_s` the fraction
        is meant for rows that came over so long a time (`keep_over`).
        """
        given = {name: fraction for name, fraction in by_class.items() if name in self._floors}
        for name, floor in self._floors.items():
            if given.get(name, keep) < floor:
                given[name] = floor
        with self._lock:
            self._keep = (keep, given)
            self._span_s = span_s

    def keep_of(self, gathered_s: float, offered: Mapping[str, float] | None = None) -> Keep:
        """What a micro-batch keeps whose rows came over so long a time.

        `offered` are the rows of each class that the last one had: as many rows in all as were
        meant, the least important classes making up for the difference.
        """
        with self._lock:
            (keep, given), span_s = self._keep, self._span_s
        adapted = keep_over(keep, span_s, gathered_s)
        if adapted == keep or not given:
            return adapted, given
        shares = keep_by_class(
            adapted,
            {name: rows for name, rows in (offered or {}).items() if name in given},
            self._worths,
        )
        return adapted, {name: max(shares.get(name, adapted), self._floors[name]) for name in given}

    def keep(self) -> Keep:
        """What the next micro-batch keeps: the fraction, and those of single classes."""
        with self._lock:
            return self._keep

    def rescale(self, operator: str, tasks: int) -> None:
        """Another number of tasks from the next micro-batch on, with the fewest moves of shards."""
        node = self._node(operator)
        wrong = _outside(node, tasks)
        if wrong is not None:
            raise AskedWrongly(wrong)
        with self._lock:
            old = self._wanted[operator]
            route = rescaled(old.route, tasks) if isinstance(node, Keyed) else ()
            self._wanted[operator] = OperatorPlan(tasks, route)

    def reroute(self, operator: str, moves: Mapping[int, int]) -> None:
        """Move single shards to other tasks from the next micro-batch on."""
        node = self._node(operator)
        if not isinstance(node, Keyed):
            raise AskedWrongly(f"operator '{operator}' has no shards: only keyed operators do")
        with self._lock:
            old = self._wanted[operator]
            self._wanted[operator] = OperatorPlan(old.tasks, rerouted(old.route, moves, old.tasks))

    def relabel(self, operator: str, tasks: int, old: Route, new: Route) -> None:
        """Tasks got other numbers: what was wished for since is translated."""
        number = {task: task for task in range(tasks)} | dict(zip(old, new, strict=True))
        with self._lock:
            entry = self._wanted[operator]
            if entry.tasks == tasks:  # a rescale meanwhile has its own numbers
                route = tuple(number[task] for task in entry.route)
                self._wanted[operator] = OperatorPlan(entry.tasks, route)

    def snapshot(self) -> dict[str, OperatorPlan]:
        """What holds now."""
        with self._lock:
            return dict(self._wanted)

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
