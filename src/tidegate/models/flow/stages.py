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

_LONGEST_TURN = 1e12
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

    @property
    def turns(self) -> Vector:
        """The share of the time for which each operator's tasks are busy."""
        return np.minimum(self.demand / self.tasks, _LONGEST_TURN)

    @property
    def loads(self) -> Vector:
        """f / c of each segment: its offered load over its capacity."""
        return np.asarray(np.bincount(self.segments, weights=self.turns), dtype=np.float64)

    def first_behind(self, segment: int) -> int:
        """The operator of a segment where one more task saves the most time."""
        saved = self._saved()
        saved[self.segments != segment] = -1.0
        return int(np.argmax(saved))

    def gains(self) -> Vector:
        """The relative gain in the pipeline's capacity if each operator had one more task.

        Only a task in the limiting segment helps, and only until another segment limits.
        """
        loads = self.loads
        worst = int(np.argmax(loads))
        others = np.delete(loads, worst).max(initial=0.0)
        left = np.maximum(loads[worst] - self._saved(), others)
        gains = loads[worst] / np.maximum(left, 1e-300) - 1.0
        helps = (self.segments == worst) & (loads[worst] > 0.0)
        return np.where(helps, gains, 0.0)

    def network(self, rate: float) -> FlowNetwork:
        """The flow network in rows of the source: source, operators in their order, sink.

        The operators of a segment count as one operator with many tasks, because a cut between two
        stages of a batch has the capacity of the whole batch.
        """
        count = len(self.segments)
        with np.errstate(divide="ignore"):
            capacities = np.where(self.loads > 0.0, rate / self.loads, np.inf)
        ways = [
            (place, place + 1, float(capacities[segment]))
            for place, segment in enumerate(self.segments.tolist())
        ]
        operators = [0, *(self.segments + FIRST).tolist(), 1]
        return FlowNetwork.of(
            [*ways, (count, count + 1, np.inf)], source=0, sink=count + 1, operators=operators
        )

    def fewest_tasks(self, load: float, least: Vector, most: Vector) -> Vector:
        """The smallest total of tasks, within `least` and `most`, with this load in every segment.

        Minimising sum k_i with sum d_i / k_i <= load gives k_i = sqrt(d_i) sum_j sqrt(d_j) / load
        (Lagrange). An operator that would need more than its `most` gets `most`, and the others
        share the rest of the load.
        """
        tasks = np.maximum(least, 1.0)
        for segment in np.unique(self.segments):
            part = self.segments == segment
            tasks[part] = _fewest(self.demand[part], load, tasks[part], most[part])
        return tasks

    def _saved(self) -> Vector:
        """The share of the time that one more task would save, for each operator."""
        return self.turns / (self.tasks + 1.0)


def _fewest(demand: Vector, load: float, least: Vector, most: Vector) -> Vector:
    tasks = least.copy()
    free = np.ones(len(demand), dtype=np.bool_)
    for _ in range(len(demand)):
        left = load - float((demand[~free] / tasks[~free]).sum())
        if left <= 0.0:
            tasks[free] = most[free]
            break
        roots = np.sqrt(demand[free])
        wanted = np.ceil(roots * roots.sum() / left - 1e-9)
        full = np.zeros_like(free)
        full[free] = wanted > most[free]
        tasks[free] = np.clip(wanted, least[free], most[free])
        if not full.any():
            break
        free &= ~full
    return np.asarray(np.maximum(tasks, least), dtype=np.float64)
