"""Walks over the graph of a segment: who reads a source, and where an operator's rows come from.

A merge only puts branches together, so every walk looks through it: an operator behind a merge
reads the sources in front of the merge.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from tidegate.pipelines.graph import (
    Aside,
    Channel,
    Keyed,
    Map,
    Merge,
    Node,
    Packed,
    Segment,
    Source,
)


def first_reader(segment: Segment, source: str) -> Map | Keyed | None:
    """The first operator that reads a source, directly or through merges."""
    known = _by_name(segment)
    operators = (node for node in segment.nodes if isinstance(node, Map | Keyed))
    return next((node for node in operators if source in _read_by(known, node)), None)


def sole_reader(segment: Segment, source: str) -> Map | Keyed | None:
    """The operator that alone reads a source, with no merge in between; None if there is none."""
    first = first_reader(segment, source)
    if first is None or source not in first.inputs:
        return None
    return first if reader_counts(segment)[source] == 1 else None


def direct_keyed(segment: Segment, source: str) -> Keyed | None:
    """The keyed operator that is the first to read a source, if no map is."""
    first = first_reader(segment, source)
    return first if isinstance(first, Keyed) else None


def dealt_out(segment: Segment, source: str) -> bool:
    """Whether all rows of a source or channel go straight to operators with tasks of their own."""
    known = _by_name(segment)
    written = {name for write in segment.writes for name in write.inputs}
    readers = [node for node in segment.nodes if source in _read_by(known, node)]
    through = {source, *(node.name for node in readers if isinstance(node, Merge))}
    return not through & written and all(
        isinstance(node, Keyed | Merge) or (isinstance(node, Map) and node.tasks is not None)
        for node in readers
    )


def origins(segment: Segment, operator: str) -> list[Node]:
    """The nodes that an operator reads, merges replaced by what they merge; ordered by name.

    Rows that an operator put aside come from that operator.
    """
    known = _by_name(segment)
    found = (known[name] for name in sorted(_read_by(known, known[operator])))
    return [node for node in found if not isinstance(node, Merge | Aside)]


def host(segment: Segment, node: Node) -> str | None:
    """The node in whose tasks a map without tasks of its own runs; None for any other node.

    It is the operator before it that has tasks of its own, or else the source or channel.
    """
    if not isinstance(node, Map) or node.tasks is not None:
        return None
    before = origins(segment, node.name)
    if not before:
        return None
    return host(segment, before[0]) or before[0].name


def hosted_before(segment: Segment, keyed: Keyed) -> tuple[Map, ...]:
    """The maps right before an operator that run where their rows are and that nothing else reads.

    The first of them comes first.
    """
    readers, known = reader_counts(segment), _by_name(segment)
    found: list[Map] = []
    node = known.get(keyed.inputs[0])
    while isinstance(node, Map) and node.tasks is None and readers[node.name] == 1:
        found.append(node)
        node = known.get(node.inputs[0])
    return tuple(reversed(found))


def feeders(segments: Iterable[Segment], operator: str) -> tuple[str, ...]:
    """The operators and sources of a pipeline whose rows an operator reads, ordered by name.

    Merges and channels only pass rows on, so the walk looks through both.
    """
    known = list(segments)
    of = {node.name: segment for segment in known for node in segment.nodes}
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [(of[operator], operator)]
    while waiting:
        segment, name = waiting.pop()
        for node in origins(segment, name):
            if not isinstance(node, Channel):
                found.add(node.name)
            elif node.name not in seen:
                seen.add(node.name)
                waiting += _merged_writers(known, node.name, found)
    return tuple(sorted(found))


def _merged_writers(
    segments: Iterable[Segment], channel: str, found: set[str]
) -> list[tuple[Segment, str]]:
    """The merges that write into a channel; other writers are added to those found."""
    merges = []
    for segment in segments:
        nodes = {node.name: node for node in segment.nodes}
        for write in segment.writes:
            for name in write.inputs if write.channel.name == channel else ():
                if isinstance(nodes.get(name), Merge | Aside):
                    merges.append((segment, name))
                else:
                    found.add(name)
    return merges


def timed_source(segment: Segment, node: Node) -> Source | None:
    """The source with an arrival column whose arrivals this operator notes.

    Arrivals are noted once, by the first operator that reads the source; for any other operator,
    and for one that reads no such source, this is None.
    """
    known = _by_name(segment)
    waiting = list(node.inputs)
    while waiting:
        origin = known[waiting.pop()]
        if isinstance(origin, Source) and origin.arrival is not None:
            return origin if first_reader(segment, origin.name) is node else None
        if isinstance(origin, Merge):
            waiting += origin.inputs
    return None


def packed_input(segment: Segment, node: Node) -> Packed | None:
    """What puts the inputs of an operator together, if it has several."""
    known = _by_name(segment)
    above = (known[name] for name in node.inputs)
    return next((one for one in above if isinstance(one, Packed)), None)


def timed_readers(segment: Segment) -> set[str]:
    """The operators that are the first to read a source with an arrival column."""
    timed = [n for n in segment.reads if isinstance(n, Source) and n.arrival is not None]
    firsts = [first_reader(segment, node.name) for node in timed]
    return {reader.name for reader in firsts if reader is not None}


def mixed_readers(segment: Segment) -> frozenset[str]:
    """Those of the timed readers whose rows come from channels as well.

    A row of a channel has the arrival column of the source too, but it does not arrive now. So
    these operators do not note arrivals; the traces of the source's rows tell them.
    """
    return frozenset(
        name
        for name in timed_readers(segment)
        if any(isinstance(node, Channel) for node in origins(segment, name))
    )


def reader_counts(segment: Segment) -> Counter[str]:
    """How many nodes and channels of the segment read each node."""
    counts = Counter(name for node in segment.nodes for name in node.inputs)
    for write in segment.writes:
        counts.update(write.inputs)
    return counts


def looped(segments: Iterable[Segment]) -> set[str]:
    """The names of the segments whose rows can come back to them through channels."""
    known = list(segments)
    feeds = {
        segment.name: {
            other.name
            for other in known
            for write in segment.writes
            if any(node.name == write.channel.name for node in other.reads)
        }
        for segment in known
    }
    reached = {name: set(direct) for name, direct in feeds.items()}
    for _ in known:
        for found in reached.values():
            found |= {further for name in found for further in feeds[name]}
    return {name for name, found in reached.items() if name in found}


def _by_name(segment: Segment) -> dict[str, Node]:
    return {node.name: node for node in (*segment.reads, *segment.nodes)}


def _read_by(known: Mapping[str, Node], node: Node) -> set[str]:
    """The names of what a node reads, merges and asides on the way included."""
    found: set[str] = set()
    waiting = list(node.inputs)
    while waiting:
        name = waiting.pop()
        found.add(name)
        if isinstance(known[name], Merge | Aside):
            waiting += known[name].inputs
    return found
