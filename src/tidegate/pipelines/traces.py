"""Which rows of a pipeline carry traces: those that come from a timed source and reach a channel.

Within one micro-batch all rows are done when the batch ends. So a trace is needed only where rows
go on to another batch: on the way from a source with an arrival column to a cut or a loop. Besides,
where rows of a source and of a channel are merged, traces tell the ones from the others.
"""

from tidegate.pipelines.graph import Channel, Graph, Merge, Source


def traced_nodes(graph: Graph) -> frozenset[str]:
    """The nodes whose rows carry traces, sources and channels included."""
    read_by = _readers(graph)
    timed = [n.name for n in graph.nodes.values() if isinstance(n, Source) and n.arrival]
    reached = _closure(timed, read_by)
    written = {w for n in graph.nodes.values() if isinstance(n, Channel) for w in graph.writers(n)}
    # Backwards from what is written into a channel to where it entered the segment.
    leading = _closure(
        list(written),
        {
            node.name: [] if isinstance(node, Channel) else list(node.inputs)
            for node in graph.nodes.values()
        },
    )
    return frozenset((reached & leading) | _mixed(graph, timed))


def _mixed(graph: Graph, timed: list[str]) -> set[str]:
    """Timed sources that are merged with a channel, on the way to the operators that read both."""
    found: set[str] = set()
    for node in graph.nodes.values():
        if isinstance(node, Merge | Channel):
            continue
        merges: set[str] = set()
        waiting, read = list(node.inputs), set[str]()
        while waiting:
            name = waiting.pop()
            read.add(name)
            if isinstance(graph.nodes[name], Merge):
                merges.add(name)
                waiting += graph.nodes[name].inputs
        sources = read.intersection(timed)
        if sources and any(isinstance(graph.nodes[name], Channel) for name in read):
            found |= {node.name, *sources, *merges}
    return found


def _readers(graph: Graph) -> dict[str, list[str]]:
    """For each node, the nodes and channels that its rows go to."""
    read_by: dict[str, list[str]] = {name: [] for name in graph.nodes}
    for node in graph.nodes.values():
        for name in graph.writers(node) if isinstance(node, Channel) else node.inputs:
            read_by[name].append(node.name)
    return read_by


def _closure(begin: list[str], edges: dict[str, list[str]]) -> set[str]:
    """All nodes that the edges lead to."""
    found, waiting = set(begin), list(begin)
    while waiting:
        new = set(edges[waiting.pop()]) - found
        found |= new
        waiting += new
    return found
