"""The improving network of a flow: where it has room, and paths that use it (Flink-ER fig. 4).

An edge that carries f of its capacity c has room for c - f more rows a second (the paper's improve
space). Against its direction there is room for f, because that much can be taken back (the reduce
space). A path from the source to the sink through edges with room raises the flow by the least room
on it (eq. 2). Where there is no such path, the flow is a maximum, and the vertices that can still
be reached are the side X of a minimum cut. Networks of a policy have a few vertices, and for those
plain dictionaries are faster than sparse matrices.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class AugmentingPath:
    """A way from the source to the sink on which the flow can be raised."""

    vertices: tuple[int, ...]
    room: float
    """|f_p|: the least room of its edges, in rows per second (eq. 2)."""


@dataclass(frozen=True, slots=True, eq=False)
class ImprovingNetwork:
    """The room between vertices, in both directions of every edge."""

    room: Mapping[int, Mapping[int, float]]
    """For each vertex, the vertices that it can send more to, and how much more."""
    source: int
    sink: int

    @classmethod
    def of(
        cls, edges: Iterable[tuple[int, int, float, float]], *, source: int, sink: int
    ) -> "ImprovingNetwork":
        """Build from (tail, head, capacity, flow) of the edges of the network itself."""
        room: dict[int, dict[int, float]] = {}
        for tail, head, capacity, flow in edges:
            for one, other, more in ((tail, head, capacity - flow), (head, tail, flow)):
                if more > 0.0:
                    beside = room.setdefault(one, {})
                    beside[other] = beside.get(other, 0.0) + more
        return cls(room, source, sink)

    def path(self, least: float = 0.0) -> AugmentingPath | None:
        """An augmenting path with the fewest edges; None if the flow is a maximum.

        Edges with room for at most `least` count as full. With shortest paths, the number of
        augmentations does not depend on the capacities (Edmonds and Karp).
        """
        before = self._search(least)
        if self.sink not in before:
            return None
        way = [self.sink]
        while way[-1] != self.source:
            way.append(before[way[-1]])
        way.reverse()
        room = min(self.room[one][other] for one, other in pairwise(way))
        return AugmentingPath(tuple(way), room)

    def reached(self, least: float = 0.0) -> frozenset[int]:
        """The vertices that the source can still send more to, itself included."""
        return frozenset(self._search(least))

    def _search(self, least: float) -> dict[int, int]:
        """Breadth first: each vertex that was reached, with the one before it."""
        before = {self.source: self.source}
        waiting = deque([self.source])
        while waiting:
            here = waiting.popleft()
            for other, more in self.room.get(here, {}).items():
                if more > least and other not in before:
                    before[other] = here
                    waiting.append(other)
        return before
