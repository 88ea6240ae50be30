"""Which sources a row can have come from, and where rows must say so.

An operator with event time that reads several sources needs to know how far each of them has come.
Its rows then carry the number of their source in a hidden column: it is attached where branches are
merged, and passes through maps. Everywhere else nothing is added.
"""

from dataclasses import dataclass, field

from tidegate.pipelines.graph import Aside, Keyed, Map, Merge, Node, Segment


@dataclass(frozen=True, slots=True)
class Origins:
    """The origins of all rows in a segment. The output of a keyed operator is an origin, too."""

    of: dict[str, tuple[str, ...]]
    """For each node, the sources, channels and keyed operators that its rows come from, sorted."""
    carried: frozenset[str]
    """The nodes whose rows carry their origin: merges, and maps behind them."""
    numbers: dict[str, int] = field(default_factory=dict)
    """The number of each origin, as it stands in the hidden column."""

    @property
    def names(self) -> tuple[str, ...]:
        """The origins by their number."""
        return tuple(self.numbers)

    def told_apart(self, node: Keyed) -> tuple[str, ...]:
        """The origins that an operator has to tell apart; empty if there is no need to."""
        needed = node.bound.event_time is not None and node.inputs[0] in self.carried
        return self.of[node.inputs[0]] if needed else ()


def origins_of(segment: Segment) -> Origins:
    """Follow the rows of a segment from where they enter it."""
    of: dict[str, tuple[str, ...]] = {}
    for node in (*segment.reads, *segment.nodes):
        if isinstance(node, Map | Merge | Aside):
            of[node.name] = tuple(sorted({name for above in node.inputs for name in of[above]}))
        else:
            of.setdefault(node.name, (node.name,))
    carried: set[str] = set()
    for node in reversed(segment.nodes):  # a reader comes before what it reads
        if _asks(node, carried):
            carried.update(above for above in node.inputs if len(of[above]) > 1)
    known = sorted({name for names in of.values() for name in names})
    return Origins(of, frozenset(carried), {name: number for number, name in enumerate(known)})


def _asks(node: Node, carried: set[str]) -> bool:
    """Whether a node needs the origins of its rows, for itself or for those behind it."""
    if isinstance(node, Keyed):
        return node.bound.event_time is not None
    return node.name in carried
