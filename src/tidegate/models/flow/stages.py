"""The flow of a pipeline of micro-batches: what its segments can carry, and who limits them.

Two things differ from a pipelined engine. **Selectivity**: operators emit more or fewer rows than
they take, so a rate at one is not the rate at another. All is told in turns instead: operator i
that gets lambda_i rows a second needs its tasks for lambda_i delta_i / (mu_i k_i) of every second.
That is f / c in any unit of rows, whatever the graph between them, because which rows an operator
gets is for the data to say and no flow can go around it. **Stages take turns**: the operators of a
segment are stages of the same batch, so their turns add up. Let the stages have shares s_i of the
time; the segment carries max over s of min_i s_i c_i, with sum s_i = 1, which is 1 / sum (1 / c_i).
There every stage is a cut of the same capacity, and the one to give a task is the one that shortens
the sum the most. Segments run side by side: there the least capacity counts, as in any network.
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
    """Operators as columns; segments by number, in the order of their rows' way."""

    segments: Counts
    """The segment of each operator."""
    demand: Vector
    """lambda_i delta_i / mu_i: tasks that the operator's rows keep busy."""
    tasks: Vector

    @property
    def turns(self) -> Vector:
        """The share of the time that each operator's tasks need."""
        return np.minimum(self.demand / self.tasks, _LONGEST_TURN)

    @property
    def loads(self) -> Vector:
        """f / c of each segment: what it is offered over what it can carry."""
        return np.asarray(np.bincount(self.segments, weights=self.turns), dtype=np.float64)

    def first_behind(self, segment: int) -> int:
        """The operator of a segment that one more task would help most."""
        saved = self._saved()
        saved[self.segments != segment] = -1.0
        return int(np.argmax(saved))

    def gains(self) -> Vector:
        """By how much the pipeline could carry more if the operator had one more task.

        Only a task in the segment that limits the pipeline helps, and only until the next segment
        limits it.
        """
        loads = self.loads
        worst = int(np.argmax(loads))
        others = np.delete(loads, worst).max(initial=0.0)
        left = np.maximum(loads[worst] - self._saved(), others)
        gains = loads[worst] / np.maximum(left, 1e-300) - 1.0
        helps = (self.segments == worst) & (loads[worst] > 0.0)
        return np.where(helps, gains, 0.0)

    def network(self, rate: float) -> FlowNetwork:
        """As a flow network in rows from outside: source, operators in their order, sink.

        The operators of a segment count as one with many tasks, because a cut between two stages of
        a batch has the capacity of the whole batch.
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
        """The fewest tasks in all that bring every segment down to this load, as far as they may.

        Minimising sum k_i with sum d_i / k_i <= load gives k_i = sqrt(d_i) sum_j sqrt(d_j) / load
        (Lagrange); whoever would need more than it may have gets that, and the others share what is
        left of the load.
        """
        tasks = np.maximum(least, 1.0)
        for segment in np.unique(self.segments):
            part = self.segments == segment
            tasks[part] = _fewest(self.demand[part], load, tasks[part], most[part])
        return tasks

    def _saved(self) -> Vector:
        """The share of the time that one more task of each operator would save."""
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
