"""A flow network as a tree of text: every edge with its flow and capacity, the minimum cut marked.

A vertex that several edges lead to is drawn at the first of them, and named at the others.
"""

from rich.text import Text
from rich.tree import Tree

from tidegate.control.bottleneck import LIMITING_LOAD
from tidegate.control.flow_graph import FlowEdge, FlowGraph, FlowVertex

CUT = "NARROWEST"
"""How the edges of the minimum cut are marked."""


def flow_tree(graph: FlowGraph) -> Tree:
    """The network from its sources to its sinks."""
    tree = Tree("", guide_style="dim", hide_root=True)
    vertices = {one.name: one for one in graph.vertices}
    drawn: set[str] = set()
    heads = {edge.head for edge in graph.edges if not edge.back}
    for name in vertices:
        if name not in heads:
            _draw(graph, vertices, name, tree.add(_vertex(vertices[name])), drawn)
    return tree


def _draw(
    graph: FlowGraph,
    vertices: dict[str, FlowVertex],
    name: str,
    branch: Tree,
    drawn: set[str],
) -> None:
    drawn.add(name)
    for edge in graph.edges:
        if edge.tail != name:
            continue
        known = edge.head in drawn
        label = Text.assemble(_edge(edge), " -> ", _vertex(vertices[edge.head], short=known))
        if known:
            label.append(" (back)" if edge.back else " (above)")
            branch.add(label)
        else:
            _draw(graph, vertices, edge.head, branch.add(label), drawn)


def _edge(edge: FlowEdge) -> Text:
    if edge.capacity_rate is None or edge.load is None:
        return Text(f"{edge.offered_rate:,.0f} rows/s")
    words = f"{edge.offered_rate:,.0f} of {edge.capacity_rate:,.0f} rows/s ({edge.load:.0%})"
    if edge.cut:
        return Text.assemble((f"{CUT} ", "bold red"), (words, "red"))
    return Text(words, style="yellow" if edge.load >= LIMITING_LOAD else "")


def _vertex(one: FlowVertex, short: bool = False) -> Text:
    name = Text(one.name, style="bold")
    if one.tasks is None or one.occupied is None or short:
        return name
    tasks = "1 task" if one.tasks == 1 else f"{one.tasks} tasks"
    words = f" {tasks}, occupied {one.occupied:.0%}"
    if one.link_rate is not None:
        words += f", a task receives {one.link_rate:,.0f} rows/s"
    return name.append(words, style="dim")
