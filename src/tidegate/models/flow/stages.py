"""A micro-batch pipeline as a flow network: the capacity of its segments, and what limits it.

Two things differ from a pipelined engine. **Selectivity**: operators emit more or fewer rows than
they read, so rates at different operators cannot be compared. Loads can: operator i, which gets
lambda_i rows a second, occupies its tasks for lambda_i delta_i / (mu_i k_i) of every second. That
is f / c in any unit of rows and for any graph, because the data decide which rows an operator gets
and no flow can bypass it. **Stages take turns**: the operators of a segment are stages of the same
batch, so their loads add up. If the stages have shares s_i of the time, the segment carries the
max over s of min_i s_i c_i, with sum s_i = 1, which is 1 / sum (1 / c_i). At that optimum every
stage is a cut of the same capacity, and the next task should go to the stage where it shortens the
sum most. Segments run in parallel, so the smallest capacity limits the pipeline, as in any network.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.models.flow.network import FlowNetwork

Vector = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_LONGEST_TURN = 1e12
WORTH = 0.01
"""More tasks are worth being started if they save at least this share of their segment's load."""
FIRST = 2
"""The number of the first segment in the network; 0 and 1 are the source and the sink."""


@dataclass(frozen=True, slots=True, eq=False)
class StageFlow:
    """Operators as columns, in the order in which rows pass them; segments are numbered."""

    segments: Counts
    """The segment of each operator."""
    demand: Vector
    """lambda_i delta_i / mu_i: how many tasks the operator's rows keep busy."""
    tasks: Vector
    hosted: Mask | None = None
    """The operators that have no tasks of their own; None: all have. They run in as many tasks as
    their rows have partitions, on the cores that their segment has anyway."""

    @property
    def turns(self) -> Vector:
        """The share of the time for which each operator's tasks are busy."""
        return np.minimum(self.demand / self._at_a_time, _LONGEST_TURN)

    @property
    def _at_a_time(self) -> Vector:
        """How many tasks of each operator run at a time: hosted ones only have their segment's."""
        if self.hosted is None:
            return self.tasks
        within = np.minimum(self.tasks, self.widths[self.segments])
        return np.where(self.hosted, within, self.tasks)

    @property
    def loads(self) -> Vector:
        """f / c of each segment: its offered load over its capacity."""
        return np.asarray(np.bincount(self.segments, weights=self.turns), dtype=np.float64)

    def first_behind(self, segment: int) -> int:
        """The operator of a segment where one more task saves the most time."""
        saved = self.saved()
        saved[self.segments != segment] = -1.0
        return int(np.argmax(saved))

    def gains(self) -> Vector:
        """The relative gain in the pipeline's capacity if each operator had one more task.

        Only a task in the limiting segment helps, and only until another segment limits.
        """
        loads = self.loads
        worst = int(np.argmax(loads))
        others = np.delete(loads, worst).max(initial=0.0)
        left = np.maximum(loads[worst] - self.saved(), others)
        gains = loads[worst] / np.maximum(left, 1e-300) - 1.0
        helps = (self.segments == worst) & (loads[worst] > 0.0)
        return np.where(helps, gains, 0.0)

    @property
    def widths(self) -> Vector:
        """The tasks of each segment's widest stage: as many cores as the segment can use.

        Hosted operators count only in a segment that has no others.
        """
        widths = np.zeros(int(self.segments.max(initial=-1)) + 1)
        own = np.ones(len(self.tasks), dtype=np.bool_) if self.hosted is None else ~self.hosted
        np.maximum.at(widths, self.segments[own], self.tasks[own])
        only_hosted = widths[self.segments] == 0.0
        np.maximum.at(widths, self.segments[only_hosted], self.tasks[only_hosted])
        return widths

    def network(self, rate: float, usable: Vector | None = None) -> FlowNetwork:
        """The flow network in rows of the source: source, operators segment by segment, sink.

        The operators of a segment count as one operator with many tasks, because a cut between two
        stages of a batch has the capacity of the whole batch. `usable` is the share of each
        segment's capacity that may be filled; infinite for a segment that is not to limit.
        """
        count = len(self.segments)
        with np.errstate(divide="ignore"):
            capacities = np.where(self.loads > 0.0, rate / self.loads, np.inf)
        if usable is not None:
            capacities = capacities * usable
        # No row may come back to a segment: the flow could go around what lies between.
        ordered = np.sort(self.segments)
        ways = [
            (place, place + 1, float(capacities[segment]))
            for place, segment in enumerate(ordered.tolist())
        ]
        operators = [0, *(ordered + FIRST).tolist(), 1]
        return FlowNetwork.of(
            [*ways, (count, count + 1, np.inf)], source=0, sink=count + 1, operators=operators
        )

    def fewest_tasks(self, loads: Vector, least: Vector, most: Vector) -> Vector:
        """The tasks on the fewest cores with at most these loads, one for each segment.

        The stages of a segment take turns on the same cores. So the fewest cores are the smallest
        w with sum d_i / min(w, most_i) <= load, or the most tasks of any stage if none is enough.
        A stage that gains little from its last tasks does without them, because each task has to
        be started: it gets the fewest with at most `WORTH` of the load more.
        """
        tasks = np.maximum(least, 1.0)
        most = np.maximum(most, tasks)
        for segment in range(len(self.loads)):
            part = self.segments == segment
            demand, lower, upper = self.demand[part], tasks[part], most[part]
            full = np.clip(_fewest_cores(demand, loads[segment], lower, upper), lower, upper)
            spared = demand / full + WORTH * loads[segment]
            tasks[part] = np.clip(np.ceil(demand / spared - 1e-9), lower, full)
        return tasks

    def saved(self) -> Vector:
        """The share of the time that one more task would save, for each operator."""
        return self.turns / (self.tasks + 1.0)


def _fewest_cores(demand: Vector, load: float, least: Vector, most: Vector) -> float:
    """The fewest cores with this load, by bisection: the load falls with every core."""

    def fits(cores: float) -> bool:
        return float((demand / np.clip(cores, least, most)).sum()) <= load * (1.0 + 1e-9)

    low, high = 1.0, float(most.max())
    while low < high:
        middle = (low + high) // 2.0
        if fits(middle):
            high = middle
        else:
            low = middle + 1.0
    return low
