"""The flow network of a run at one moment: in a sentence, and for JSON."""

from dataclasses import dataclass
from typing import Any

from tidegate.control.flow_graph import FlowEdge, FlowGraph, FlowVertex
from tidegate.view.figures import rounded


@dataclass(frozen=True, slots=True)
class NetworkMoment:
    """The flow network at one tick."""

    at_s: float
    """Seconds since the start of the first tick."""
    graph: FlowGraph

    @property
    def headline(self) -> str:
        """What the network shows, in one sentence."""
        graph = self.graph
        return (
            f"At second {self.at_s:,.0f}, {graph.arrival_rate:,.0f} rows/s arrived, and the"
            f" pipeline could process {graph.capacity_rate:,.0f} rows/s: the narrowest place was"
            f" before `{graph.operator}` ({graph.load:.0%} full)."
        )

    def document(self) -> dict[str, Any]:
        """For JSON: rates in rows per second, loads and shares of the time as fractions."""
        graph = self.graph
        return {
            "at_s": round(self.at_s, 3),
            "arrival_rate": rounded(graph.arrival_rate, 1),
            "minimum_cut": {
                "before": graph.operator,
                "capacity_rate": rounded(graph.capacity_rate, 1),
                "load": rounded(graph.load, 4),
                "limits": graph.limits,
            },
            "vertices": [_vertex(one) for one in graph.vertices],
            "edges": [_edge(one) for one in graph.edges],
        }


def _vertex(one: FlowVertex) -> dict[str, Any]:
    return {
        "name": one.name,
        "segment": one.segment,
        "tasks": one.tasks,
        "occupied": rounded(one.occupied, 4),
        "service_rate": rounded(one.service_rate, 1),
        "link_rate": rounded(one.link_rate, 1),
        "behind_cut": one.behind,
    }


def _edge(one: FlowEdge) -> dict[str, Any]:
    return {
        "from": one.tail,
        "to": one.head,
        "offered_rate": rounded(one.offered_rate, 1),
        "flow_rate": rounded(one.flow_rate, 1),
        "capacity_rate": rounded(one.capacity_rate, 1),
        "load": rounded(one.load, 4),
        "cut": one.cut,
    }
