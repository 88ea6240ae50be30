"""The flow network of a pipeline at one tick: flow and capacity of its edges, and its minimum cut.

An edge leads from an operator or source to an operator that reads its rows. Rates are in the rows
that pass the edge, not in rows of the source, so that they are what a person counts.
`control/flow/graph.py` draws it.
"""

from dataclasses import dataclass

from tidegate.models.flow.limiting import LIMITING


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowVertex:
    """An operator, or a source or sink."""

    name: str
    segment: str | None = None
    """None for a source or sink, and so are the others."""
    tasks: int | None = None
    occupied: float | None = None
    """The share of the time for which its tasks receive or work on rows; above 1 they cannot."""
    service_rate: float | None = None
    """Rows per second that a task completes while it works."""
    link_rate: float | None = None
    """Rows per second that a task receives while it waits for them; None: no limit was seen."""
    behind: bool = False
    """Whether it is on the side Y: its rows, or a part of them, come through the minimum cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowEdge:
    """The rows that one vertex hands to another."""

    tail: str
    head: str
    offered_rate: float
    """Rows per second that are to pass it."""
    capacity_rate: float | None
    """c: rows per second that can pass it; None where nothing limits it, or nothing passes."""
    cut: bool = False
    """Whether the minimum cut crosses it."""
    back: bool = False
    """Whether it leads back, as in a loop."""

    @property
    def flow_rate(self) -> float:
        """f: rows per second that pass it. It never exceeds the capacity."""
        if self.capacity_rate is None:
            return self.offered_rate
        return min(self.offered_rate, self.capacity_rate)

    @property
    def load(self) -> float | None:
        """The offered rate over the capacity."""
        return None if self.capacity_rate is None else self.offered_rate / self.capacity_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGraph:
    """The network of one tick; vertices and edges are in the order in which rows pass them."""

    vertices: tuple[FlowVertex, ...]
    edges: tuple[FlowEdge, ...]
    arrival_rate: float
    """Rows per second from outside."""
    capacity_rate: float
    """c(D) of the minimum cut, in rows per second from outside (eq. 4)."""
    operator: str
    """The operator right behind the minimum cut."""

    @property
    def load(self) -> float:
        """How full the minimum cut is; above 1, rows pile up before it."""
        return self.arrival_rate / self.capacity_rate

    @property
    def limits(self) -> bool:
        """Whether the minimum cut limits the pipeline (eq. 11)."""
        return self.load >= LIMITING
