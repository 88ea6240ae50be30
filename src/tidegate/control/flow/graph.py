"""Draws the flow network of a pipeline as it ran, from measurements alone.

All operators of a segment share its batches' time, and they share it in the way that suits the
load. So the edges into one segment are equally full, and f / c is the segment's
(`models/flow/stages.py`). The data decide which rows an operator gets, and no row can go around it.
So the minimum cut is right before the fullest segment, and it is drawn before the operator there
that gains most from another task.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tidegate.control.flow.view import FlowView
from tidegate.control.flow_graph import FlowEdge, FlowGraph, FlowVertex
from tidegate.control.measurement import Measurement, OperatorMeasurement
from tidegate.models.flow.cuts import least_cut_together
from tidegate.models.flow.stages import FIRST, StageFlow

SOURCE, SINK = "source", "sink"
"""The names of what is before and behind the operators, where records tell no other."""


class FlowGraphs:
    """Draws the networks of the ticks of a run, which it is given in their order."""

    def __init__(self) -> None:
        self._view = FlowView()

    def skip(self, measurement: Measurement) -> None:
        """Learn from a tick that is not drawn."""
        self._view.update(measurement)

    def draw(self, measurement: Measurement) -> FlowGraph | None:
        """The network at the end of this tick; None without load, or while costs are unknown."""
        view, rate = self._view, measurement.arrival_rate
        flow = view.update(measurement)
        if flow is None or rate <= 0.0 or not flow.loads.any():
            return None
        cut = least_cut_together(flow.network(rate))
        segment = cut.first_operators[0] - FIRST
        first = view.operators[flow.first_behind(segment)].name
        edges = _edges(view, flow)
        behind = _reached(edges, first)
        return FlowGraph(
            vertices=_vertices(view, flow, edges, behind),
            edges=tuple(
                replace(edge, cut=edge.head == first and edge.tail not in behind) for edge in edges
            ),
            arrival_rate=rate,
            capacity_rate=cut.capacity,
            operator=first,
        )


def _vertices(
    view: FlowView, flow: StageFlow, edges: Sequence[FlowEdge], behind: frozenset[str]
) -> tuple[FlowVertex, ...]:
    inner = {}
    for one, turn in zip(view.operators, flow.turns.tolist(), strict=True):
        known = view.known(one.name)
        limited = known.link_rate != float("inf")
        inner[one.name] = FlowVertex(
            name=one.name,
            segment=one.segment,
            tasks=one.tasks,
            occupied=turn,
            service_rate=known.service_rate,
            link_rate=known.link_rate if limited else None,
            behind=one.name in behind,
        )
    sources = dict.fromkeys(edge.tail for edge in edges if edge.tail not in inner)
    sinks = dict.fromkeys(edge.head for edge in edges if edge.head not in inner)
    return (
        *(FlowVertex(name=name) for name in sources),
        *inner.values(),
        *(FlowVertex(name=name, behind=name in behind) for name in sinks),
    )


def _edges(view: FlowView, flow: StageFlow) -> list[FlowEdge]:
    order = {one.name: number for number, one in enumerate(view.operators)}
    found = []
    for one, segment in zip(view.operators, flow.segments.tolist(), strict=True):
        load = float(flow.loads[segment])
        for name, rate in _input_rates(view, one, order).items():
            found.append(
                FlowEdge(
                    tail=name,
                    head=one.name,
                    offered_rate=rate,
                    capacity_rate=rate / load if rate > 0.0 and load > 0.0 else None,
                    back=order.get(name, -1) >= order[one.name],
                )
            )
    read = {edge.tail for edge in found}
    ends = [one for one in view.operators if one.name not in read]
    for one in ends:
        head = SINK if len(ends) == 1 else f"{SINK} of {one.name}"
        rate = view.emitted_rate(one)
        found.append(FlowEdge(tail=one.name, head=head, offered_rate=rate, capacity_rate=None))
    return found


def _input_rates(
    view: FlowView, one: OperatorMeasurement, order: Mapping[str, int]
) -> dict[str, float]:
    """Rows per second that come from each of an operator's inputs.

    What operators emit is measured; the sources have the rest, in even parts.
    """
    inputs, offered = _inputs(view.operators, one), view.offered_rate(one)
    emitted = {
        name: view.emitted_rate(view.operators[order[name]]) for name in inputs if name in order
    }
    sources = [name for name in inputs if name not in order]
    rest = max(offered - sum(emitted.values()), 0.0) / max(len(sources), 1)
    rates = {name: emitted.get(name, rest) for name in inputs}
    total = sum(rates.values())
    if total <= 0.0:
        return dict.fromkeys(inputs, offered / len(inputs))
    return {name: offered * rate / total for name, rate in rates.items()}


def _inputs(operators: Sequence[OperatorMeasurement], one: OperatorMeasurement) -> tuple[str, ...]:
    """Whose rows an operator reads; the one before it, in records that do not tell."""
    if one.inputs:
        return one.inputs
    place = operators.index(one)
    return (operators[place - 1].name if place else SOURCE,)


def _reached(edges: Sequence[FlowEdge], first: str) -> frozenset[str]:
    """The operator behind the cut and all that its rows lead to."""
    found = {first}
    waiting = [first]
    while waiting:
        here = waiting.pop()
        for edge in edges:
            if edge.tail == here and not edge.back and edge.head not in found:
                found.add(edge.head)
                waiting.append(edge.head)
    return frozenset(found)
