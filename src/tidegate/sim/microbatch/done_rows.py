"""When inputs of a simulated pipeline are done: when the last segment that gets them is.

A segment may feed several others. Its rows then go through all of these, and an input is done when
the slowest one is done with it, as on Spark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.sim.microbatch.batch import SimulatedBatch
from tidegate.sim.microbatch.world import SimulatedSegment, Vector


@dataclass(frozen=True, slots=True, eq=False)
class DoneRows:
    """Inputs that were done at the same time."""

    arrived_s: Vector
    counts: Vector
    ended_s: float

    @property
    def rows(self) -> float:
        """How many inputs."""
        return float(self.counts.sum())


class DoneInputs:
    """Joins what the last segments behind a source are done with."""

    def __init__(self, segments: Sequence[SimulatedSegment]) -> None:
        above = {segment.name: segment.after for segment in segments}
        fed = set(above.values())
        self._root: dict[str, str] = {}
        """The segment that reads the source, for each segment that feeds no other."""
        for name in (name for name in above if name not in fed):
            root = name
            while (feeder := above[root]) is not None:
                root = feeder
            self._root[name] = root
        self._waiting: dict[str, list[tuple[Vector, Vector, Vector]]] = {
            name: [] for name in self._root
        }
        """What one last segment is done with, and another one may not be."""

    def add(self, ended: Mapping[str, Sequence[SimulatedBatch]]) -> list[DoneRows]:
        """The inputs that are done with these batches."""
        done: list[DoneRows] = []
        for root in dict.fromkeys(self._root.values()):
            leaves = [name for name, other in self._root.items() if other == root]
            if len(leaves) == 1:
                found = ended.get(leaves[0], ())
                done += [DoneRows(one.arrived_s, one.counts, one.ended_s) for one in found]
            else:
                done += self._joined(leaves, ended)
        return done

    def _joined(
        self, leaves: Sequence[str], ended: Mapping[str, Sequence[SimulatedBatch]]
    ) -> list[DoneRows]:
        """The inputs that all leaves are done with. All get them in the same order."""
        for name in leaves:
            self._waiting[name] += [
                (one.arrived_s, one.counts, np.full(len(one.counts), one.ended_s))
                for one in ended.get(name, ())
            ]
        if not all(self._waiting[name] for name in leaves):
            return []
        whole = {
            name: tuple(np.concatenate(parts) for parts in zip(*self._waiting[name], strict=True))
            for name in leaves
        }
        length = min(len(arrived_s) for arrived_s, _, _ in whole.values())
        arrived_s, counts, _ = (part[:length] for part in whole[leaves[0]])
        ended_s = np.max([ends[:length] for _, _, ends in whole.values()], axis=0)
        for name, (all_arrived_s, all_counts, ends) in whole.items():
            rest = (all_arrived_s[length:], all_counts[length:], ends[length:])
            self._waiting[name] = [rest] if len(rest[0]) else []
        return [
            DoneRows(arrived_s[ended_s == at_s], counts[ended_s == at_s], float(at_s))
            for at_s in np.unique(ended_s)
        ]
