"""Walks over a segment: through merges, by operators in the order in which they were written."""

from dataclasses import replace

import pyarrow as pa

from tidegate.pipelines.functions import count
from tidegate.pipelines.graph import (
    Channel,
    Graph,
    Keyed,
    Map,
    Merge,
    Node,
    Segment,
    Sink,
    Source,
    TaskBounds,
)
from tidegate.pipelines.walks import (
    dealt_out,
    direct_keyed,
    feeders,
    first_reader,
    host,
    looped,
    origins,
    reader_counts,
    sole_reader,
    timed_readers,
    timed_source,
)

ROWS = pa.schema([("k", pa.string())])


def source(name: str, arrival: str | None = None) -> Source:
    return Source(name=name, inputs=(), schema=ROWS, frame=None, arrival=arrival)


def map_of(name: str, *inputs: str) -> Map:
    return Map(name=name, inputs=inputs, schema=ROWS, function=lambda table: table)


def keyed(name: str, *inputs: str) -> Keyed:
    bound = count().bind(ROWS, ("k",))
    return Keyed(
        name=name,
        inputs=inputs,
        schema=bound.output,
        key=("k",),
        rows=ROWS,
        bound=bound,
        shards=4,
        tasks=TaskBounds(1, 4),
    )


def segment_of(*nodes: Node) -> Segment:
    """The main segment of a pipeline of these nodes."""
    graph = Graph("p")
    for node in nodes:
        graph.add(node)
    return next(found for found in graph.segments() if found.name == "main")


def name_of(node: Node | None) -> str | None:
    return None if node is None else node.name


def test_a_source_that_one_operator_reads() -> None:
    segment = segment_of(source("in", "at"), map_of("m", "in"), keyed("n", "m"))
    assert name_of(first_reader(segment, "in")) == "m"
    assert name_of(sole_reader(segment, "in")) == "m"
    assert direct_keyed(segment, "in") is None
    assert [node.name for node in origins(segment, "n")] == ["m"]
    assert name_of(timed_source(segment, segment.nodes[1])) == "in"
    assert timed_source(segment, segment.nodes[2]) is None
    assert timed_readers(segment) == {"m"}


def test_a_map_without_tasks_runs_in_those_of_the_operator_before_it() -> None:
    segment = segment_of(
        source("in"), map_of("m", "in"), keyed("n", "m"), map_of("o", "n"), map_of("p", "o")
    )
    assert [host(segment, node) for node in segment.nodes] == [None, "in", None, "n", "n"]


def test_walks_look_through_merges() -> None:
    merge = Merge(name="both", inputs=("late", "in"), schema=ROWS)
    segment = segment_of(source("in"), source("late", "at"), merge, keyed("n", "both"))
    assert name_of(first_reader(segment, "in")) == name_of(first_reader(segment, "late")) == "n"
    assert sole_reader(segment, "in") is None, "a merge stands in between"
    assert name_of(direct_keyed(segment, "late")) == "n"
    assert [node.name for node in origins(segment, "n")] == ["in", "late"]
    assert name_of(timed_source(segment, segment.nodes[3])) == "late"


def test_rows_are_dealt_out_where_every_reader_has_tasks_of_its_own() -> None:
    merge = Merge(name="both", inputs=("late", "in"), schema=ROWS)
    wide = replace(map_of("wide", "in"), tasks=TaskBounds(1, 4))
    sink = Sink(name="out", inputs=("both",), schema=ROWS, format="noop")
    assert dealt_out(segment_of(source("in"), keyed("n", "in"), wide), "in")
    assert not dealt_out(segment_of(source("in"), keyed("n", "in"), map_of("m", "in")), "in")
    both = (source("in"), source("late"), merge, keyed("n", "both"))
    assert dealt_out(segment_of(*both), "late")
    assert not dealt_out(segment_of(*both, sink), "late"), "the sink writes where the rows are"
    cut = Channel(name="cut", inputs=("both",), schema=ROWS)
    assert not dealt_out(segment_of(*both, cut), "in"), "so does the channel"


def test_a_source_that_two_read_has_a_first_reader_and_no_sole_one() -> None:
    segment = segment_of(source("in", "at"), map_of("one", "in"), keyed("two", "in"))
    assert name_of(first_reader(segment, "in")) == "one"
    assert sole_reader(segment, "in") is None
    assert direct_keyed(segment, "in") is None
    assert reader_counts(segment)["in"] == 2
    assert timed_source(segment, segment.nodes[2]) is None, "the first reader has noted them"
    assert timed_readers(segment) == {"one"}


def test_a_source_that_goes_straight_into_a_channel_or_a_sink_has_no_reader() -> None:
    channel = Channel(name="cut", inputs=("in",), schema=ROWS)
    segment = segment_of(
        source("in", "at"),
        channel,
        Sink(name="out", inputs=("in",), schema=ROWS, format="noop"),
        Sink(name="end", inputs=("cut",), schema=ROWS, format="noop"),
    )
    assert first_reader(segment, "in") is None
    assert sole_reader(segment, "in") is None
    assert reader_counts(segment)["in"] == 2
    assert timed_readers(segment) == set()


def test_segments_on_a_cycle_of_channels_are_looped_and_others_are_not() -> None:
    graph = Graph("p")
    for node in (
        source("in"),
        Channel(name="again", inputs=(), schema=ROWS, loop=True),
        Merge(name="both", inputs=("in", "again"), schema=ROWS),
        map_of("first", "both"),
        Channel(name="cut", inputs=("first",), schema=ROWS),
        map_of("second", "cut"),
        Channel(name="end", inputs=("second",), schema=ROWS),
        map_of("third", "end"),
        Sink(name="out", inputs=("third",), schema=ROWS, format="noop"),
    ):
        graph.add(node)
    segments = {segment.name for segment in graph.segments()}
    assert looped(graph.segments()) == set(), "nothing is fed back yet"
    graph.feeds["again"] = ["second"]
    found = looped(graph.segments())
    assert found == {one for one in segments if one != "end"} & found
    assert "end" not in found and len(found) >= 2


def test_feeders_are_found_through_merges_and_channels() -> None:
    """Two sources merge; a cut leads to a keyed operator, and a loop from there back."""
    graph = Graph("p")
    for node in (
        source("left"),
        source("right"),
        Merge(name="both", inputs=("left", "right"), schema=ROWS),
        Channel(name="again", inputs=(), schema=ROWS, loop=True),
        Merge(name="all", inputs=("both", "again"), schema=ROWS),
        map_of("parse", "all"),
        map_of("other", "both"),
        Merge(name="parsed", inputs=("other", "parse"), schema=ROWS),
        Channel(name="cut", inputs=("parsed",), schema=ROWS),
        keyed("count", "cut"),
        map_of("more", "count"),
    ):
        graph.add(node)
    graph.feeds["again"] = ["more"]
    segments = graph.segments()
    assert feeders(segments, "parse") == ("left", "more", "right")
    assert feeders(segments, "other") == ("left", "right")
    assert feeders(segments, "count") == ("other", "parse")
    assert feeders(segments, "more") == ("count",)
