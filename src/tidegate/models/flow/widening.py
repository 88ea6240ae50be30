"""Which operator gets the next task: the one whose task opens the widest augmenting path.

A flow fills its least cut, so only a task right behind that cut lets more rows through (Flink-ER
algorithm 2). How many more is read from the improving network of the same flow on the network with
the task added: the room of its augmenting path (eq. 2). If two cuts are equally full, one task
alone opens no path. The cut nearest to the source then gets a task first, and the other one next.

Two things are Spark's. The stages of a segment take turns on the same cores, so a stage that is
narrower than its segment gets a task without another core, and such tasks come first. And where no
core is left, a segment that has room gives one up: the reduce space of the improving network, in
cores.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from tidegate.models.flow.cuts import least_cut
from tidegate.models.flow.network import Flow
from tidegate.models.flow.stages import FIRST, WORTH, StageFlow, Vector


@dataclass(frozen=True, slots=True, eq=False)
class TaskLimits:
    """What tasks and cores there may be."""

    least: Vector
    """The fewest tasks of each operator."""
    most: Vector
    """The most tasks of each operator."""
    cores: float
    """Cores for all segments together; a segment takes as many as its widest stage has tasks."""


@dataclass(frozen=True, slots=True)
class NextTask:
    """A task for an operator, and what it is good for."""

    operator: int
    """Its place in the flow."""
    room: float
    """Rows per second from outside that can be carried in addition (eq. 2). It is zero if another
    cut is as small."""
    core: bool
    """Whether it takes another core."""


def behind_least_cut(flow: StageFlow, rate: float, usable: Vector) -> tuple[int, Flow]:
    """The segment right behind the least cut, and the flow that fills the cut."""
    carried = flow.network(rate, usable).carrying()
    return least_cut(carried).first_operators[0] - FIRST, carried


def next_task(
    flow: StageFlow, rate: float, usable: Vector, most: Vector, segment: int, carried: Flow
) -> NextTask | None:
    """The best task for a segment behind the least cut; None if no operator of it may have one.

    A task that takes no core comes first, if its operator gains from being as wide as its segment;
    then the one with the widest path.
    """
    found = []
    saved, width, load = flow.saved(), flow.widths[segment], flow.loads[segment]
    gains = flow.turns - flow.demand / np.maximum(np.minimum(width, most), flow.tasks)
    for place in np.flatnonzero((flow.segments == segment) & (flow.tasks < most)).tolist():
        core = bool(flow.tasks[place] >= width)
        if core or gains[place] >= WORTH * load:
            wider = with_tasks(flow, place, flow.tasks[place] + 1.0).network(rate, usable)
            path = Flow(wider, carried.carried).improving().path(1e-9 * carried.value)
            found.append(NextTask(place, 0.0 if path is None else path.room, core))
    return min(found, key=lambda one: (one.core, -one.room, -saved[one.operator]), default=None)


def widened(
    flow: StageFlow,
    rate: float,
    usable: Vector,
    *,
    segments: Collection[int],
    loads: Vector,
    limits: TaskLimits,
) -> Vector:
    """Tasks with which these segments have at most these loads, as far as the limits allow.

    One task after the other goes where the flow gains most. `usable` is as in `StageFlow.network`.
    A segment that can get no more is left as it is, and does not keep the others from theirs.
    """
    over = set(segments)
    while True:
        over -= {segment for segment in over if flow.loads[segment] <= loads[segment]}
        if not over:
            return flow.tasks
        chosen = np.isin(np.arange(len(flow.loads)), list(over))
        filled = np.where(chosen, usable, np.inf)
        segment, carried = behind_least_cut(flow, rate, filled)
        one = next_task(flow, rate, filled, limits.most, segment, carried)
        less: StageFlow | None = flow
        if one is not None and one.core and flow.widths.sum() + 1.0 > limits.cores:
            less = _given_up(flow, over, loads, limits)
        if one is None or less is None:
            over.discard(segment)
        else:
            flow = with_tasks(less, one.operator, less.tasks[one.operator] + 1.0)


def with_tasks(flow: StageFlow, place: int, tasks: float) -> StageFlow:
    """The same flow with another number of tasks for one operator."""
    changed = flow.tasks.copy()
    changed[place] = tasks
    return replace(flow, tasks=changed)


def _given_up(
    flow: StageFlow, over: Collection[int], loads: Vector, limits: TaskLimits
) -> StageFlow | None:
    """The flow with one core less for the segment that then has the most room; None if none can."""
    best, emptiest = None, 1.0
    for segment, width in enumerate(flow.widths.tolist()):
        part = flow.segments == segment
        if flow.hosted is not None and not flow.hosted[part].all():
            part = part & ~flow.hosted
        narrow = np.where(part, np.minimum(flow.tasks, width - 1.0), flow.tasks)
        if segment in over or width <= 1.0 or (narrow < limits.least).any():
            continue
        less = replace(flow, tasks=narrow)
        filled = float(less.loads[segment] / loads[segment])
        if filled <= emptiest:
            best, emptiest = less, filled
    return best
