"""The drawn network: flows and capacities that fit the measurement, and the cut where it is."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.control.flow.test_bottleneck import operator, tick
from tidegate.control.flow.bottleneck import BottleneckFinder
from tidegate.control.flow.graph import FlowGraphs
from tidegate.control.flow_graph import FlowEdge, FlowGraph
from tidegate.control.measurement import Measurement


def drawn(measurement: Measurement) -> FlowGraph:
    graph = FlowGraphs().draw(measurement)
    assert graph is not None
    return graph


def edge(graph: FlowGraph, tail: str, head: str) -> FlowEdge:
    (found,) = [one for one in graph.edges if (one.tail, one.head) == (tail, head)]
    return found


def test_a_chain_that_is_too_narrow() -> None:
    """0.002 + 0.034 core seconds a row on 4 tasks carry 111 rows a second; 200 arrive."""
    graph = drawn(
        tick(
            operator("parse", 0.002, inputs=("clicks",), rows_out=100),
            operator("match", 0.034, inputs=("parse",), rows_out=10),
            rate=200.0,
        )
    )
    assert [one.name for one in graph.vertices] == ["clicks", "parse", "match", "sink"]
    assert [one.behind for one in graph.vertices] == [False, False, True, True]
    assert graph.operator == "match" and graph.limits
    assert graph.capacity_rate == pytest.approx(4 / 0.036)
    assert graph.load == pytest.approx(1.8)
    before = edge(graph, "parse", "match")
    assert before.cut and not edge(graph, "clicks", "parse").cut
    assert before.offered_rate == pytest.approx(200.0)
    assert before.flow_rate == before.capacity_rate == pytest.approx(4 / 0.036)
    assert before.load == pytest.approx(1.8)
    out = edge(graph, "match", "sink")
    assert out.offered_rate == pytest.approx(20.0) and out.capacity_rate is None
    match = graph.vertices[2]
    assert match.occupied == pytest.approx(200 * 0.034 / 4) and match.tasks == 4
    assert match.service_rate == pytest.approx(1 / 0.034) and match.link_rate is None


def test_rates_are_in_the_rows_of_each_edge() -> None:
    """A map that makes ten rows of one: the edge behind it has ten times the rows."""
    graph = drawn(
        tick(
            operator("split", 0.001, inputs=("in",), rows_out=1000),
            operator("count", 0.001, inputs=("split",), rows=1000, arrival_rate=1000.0),
        )
    )
    assert edge(graph, "split", "count").offered_rate == pytest.approx(1000.0)
    loads = {one.load for one in graph.edges if one.load is not None}
    assert max(loads) == pytest.approx(min(loads)), "stages of one batch share its time"


def test_a_merge_divides_what_comes_in() -> None:
    graph = drawn(
        tick(
            operator("left", 0.001, inputs=("a",), rows=60, rows_out=60),
            operator("right", 0.001, inputs=("b",), rows=40, rows_out=20),
            operator("all", 0.02, inputs=("c", "left", "right"), rows=100),
        )
    )
    rates = {one.tail: one.offered_rate for one in graph.edges if one.head == "all"}
    assert rates == pytest.approx({"left": 60.0, "right": 20.0, "c": 20.0})
    assert graph.operator == "all"
    assert {one.tail for one in graph.edges if one.cut} == {"left", "right", "c"}
    total = sum(one.capacity_rate or 0.0 for one in graph.edges if one.cut)
    assert total == pytest.approx(100.0 / graph.load), "c(D) is the sum over the crossing edges"


def test_branches_have_sinks_of_their_own_and_loops_lead_back() -> None:
    graph = drawn(
        tick(
            operator("parse", 0.001, inputs=("in", "match"), rows_out=100),
            operator("match", 0.03, inputs=("parse",), rows_out=30),
            operator("log", 0.001, inputs=("parse",), rows_out=100),
            operator("alert", 0.001, inputs=("match",), rows=30, rows_out=30),
        )
    )
    heads = {one.head for one in graph.edges} - {one.name for one in graph.vertices if one.tasks}
    assert heads == {"sink of log", "sink of alert"}
    assert edge(graph, "match", "parse").back and not edge(graph, "match", "parse").cut
    behind = {one.name for one in graph.vertices if one.behind}
    assert behind == {"match", "alert", "sink of alert"}
    assert edge(graph, "parse", "match").cut


def test_records_that_do_not_tell_are_drawn_as_a_chain() -> None:
    graph = drawn(tick(operator("parse", 0.01), operator("match", 0.03)))
    ends = [(one.tail, one.head) for one in graph.edges]
    assert ends == [("source", "parse"), ("parse", "match"), ("match", "sink")]


def test_nothing_is_drawn_without_load_or_costs() -> None:
    graphs = FlowGraphs()
    idle = tick(operator("parse", 1e9, rows=0))
    assert graphs.draw(idle) is None
    graphs.skip(tick(operator("parse", 0.01)))
    assert graphs.draw(idle) is not None, "what a row costs is known from before"
    assert graphs.draw(dataclasses.replace(idle, arrival_rate=0.0)) is None


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(1e-4, 0.1), st.integers(1, 8), st.integers(0, 2)),
        min_size=1,
        max_size=5,
    ),
    st.floats(1.0, 500.0),
)
def test_the_drawn_cut_is_the_bottleneck(
    operators: list[tuple[float, int, int]], rate: float
) -> None:
    """Flow = capacity across the cut if it is too small, and nowhere is a flow above a capacity."""
    ordered = sorted(operators, key=lambda one: one[2])
    measurement = tick(
        *(
            operator(f"op{n}", cost_s, tasks=tasks, segment=f"s{segment}")
            for n, (cost_s, tasks, segment) in enumerate(ordered)
        ),
        rate=rate,
    )
    graph = drawn(measurement)
    found = BottleneckFinder().find(measurement)
    assert found is not None
    assert graph.load == pytest.approx(found.load, rel=1e-5)
    (cut,) = [one for one in graph.edges if one.cut]
    assert cut.head == graph.operator
    assert cut.load == pytest.approx(graph.load, rel=1e-5)
    for one in graph.edges:
        assert one.capacity_rate is None or one.flow_rate <= one.capacity_rate
        assert one.load is None or one.load <= graph.load * (1 + 1e-5)
