"""Flow networks as text and as a picture: every vertex and edge once, and the cut where it is."""

import io
import re
from xml.etree import ElementTree

from rich.console import Console

from tests.unit.control.flow.test_bottleneck import operator, tick
from tidegate.control.flow.graph import FlowGraphs
from tidegate.control.flow_graph import FlowGraph
from tidegate.view.flow_tree import flow_tree
from tidegate.view.pages.flow_svg import flow_svg


def branched() -> FlowGraph:
    """Two sources, a branch, a merge behind it and a loop; `both` is too narrow."""
    graph = FlowGraphs().draw(
        tick(
            operator("parse", 0.001, inputs=("clicks", "match", "views"), rows_out=100),
            operator("match", 0.01, inputs=("parse",), rows_out=30),
            operator("<log>", 0.001, inputs=("parse",), rows_out=100, segment="b"),
            operator("both", 0.04, inputs=("match", "<log>"), rows=130, segment="d"),
            operator("a_name_that_no_box_is_wide_enough_for", 0.001, inputs=("match",), rows=30),
            rate=100.0,
        )
    )
    assert graph is not None and graph.operator == "both"
    return graph


def text_of(graph: FlowGraph) -> str:
    file = io.StringIO()
    Console(file=file, width=140, _environ={}).print(flow_tree(graph))
    return file.getvalue()


def test_the_tree_has_every_edge_once() -> None:
    graph = branched()
    text = text_of(graph)
    assert text.count("->") == len(graph.edges)
    assert text.count("NARROWEST ") == sum(edge.cut for edge in graph.edges) == 2
    assert "-> parse (back)" in text and "-> parse (above)" in text
    assert "-> both (above)" in text
    for one in graph.vertices:
        tasks = "" if one.tasks is None else f" {one.tasks} task"
        assert text.count(f"{one.name}{tasks}") >= 1
    lines = text.splitlines()
    assert lines[0] == "clicks" and "views" in lines, "a tree for each source"


def test_a_link_that_was_seen_to_limit_is_told() -> None:
    graphs = FlowGraphs()
    for number, rows in enumerate([100, 400, 200, 900, 50, 700, 300, 800]):
        bytes_in = 25.0 * rows
        told = {"row_bytes": 100.0, "task_bytes": bytes_in, "task_wait_s": bytes_in / 1e5}
        graph = graphs.draw(tick(operator("match", 0.001, rows=rows, **told), number=number))
    assert graph is not None
    assert "a task receives 1,000 rows/s" in text_of(graph)


def test_the_picture_is_sound_and_says_the_same() -> None:
    graph = branched()
    svg = flow_svg(graph, "what <it> shows")
    root = ElementTree.fromstring(svg)
    assert root.attrib["aria-label"] == "what <it> shows"
    boxes = root.findall("rect")
    assert len(boxes) == len(graph.vertices)
    corners = {(box.attrib["x"], box.attrib["y"]) for box in boxes}
    assert len(corners) == len(boxes), "no box covers another"
    edges = [one for one in root.findall("path") if "marker-end" in one.attrib]
    assert len(edges) == len(graph.edges)
    assert len([one for one in root.findall("path") if one.attrib.get("class") == "cut"]) == 1
    words = "".join(root.itertext())
    assert "narrowest place, 130% full" in words and "100 of 77 rows/s" in words
    assert "a_name_that_no_box" in words and "wide_enough_for" not in words
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for box in boxes:
        x, y = float(box.attrib["x"]), float(box.attrib["y"])
        assert 0 <= x <= width - 100 and 0 <= y <= height - 46


def test_rows_run_from_left_to_right() -> None:
    """Every edge that does not lead back begins left of where it ends."""
    root = ElementTree.fromstring(flow_svg(branched(), "x"))
    ways = [one.attrib["d"] for one in root.findall("path") if "marker-end" in one.attrib]
    back = 0
    for way in ways:
        numbers = [float(one) for one in re.findall(r"-?[\d.]+", way)]
        back += numbers[0] > numbers[-2]
    assert back == 1
