"""Which rows carry traces."""

import pyarrow as pa

from tidegate.pipelines.graph import Channel, Graph, Map, Merge, Sink, Source
from tidegate.pipelines.traces import traced_nodes

SCHEMA = pa.schema([("k", pa.int64()), ("at", pa.timestamp("us", "UTC"))])


def source(name: str, arrival: str | None = "at") -> Source:
    return Source(name=name, inputs=(), schema=SCHEMA, frame=None, arrival=arrival)


def step(name: str, above: str) -> Map:
    return Map(name=name, inputs=(above,), schema=SCHEMA, function=lambda rows: rows)


def cut(name: str, above: str) -> Channel:
    return Channel(name=name, inputs=(above,), schema=SCHEMA)


def sink(name: str, above: str) -> Sink:
    return Sink(name=name, inputs=(above,), schema=SCHEMA)


def graph(*nodes, feeds: dict[str, list[str]] | None = None) -> Graph:
    return Graph("p", {node.name: node for node in nodes}, feeds or {})


def test_one_segment_carries_none() -> None:
    assert traced_nodes(graph(source("s"), step("m", "s"), sink("out", "m"))) == frozenset()


def test_only_the_way_from_a_timed_source_to_a_channel_carries_them() -> None:
    nodes = graph(
        source("s"),
        step("a", "s"),
        step("b", "s"),  # leads to a sink only
        sink("shown", "b"),
        cut("c", "a"),
        step("d", "c"),  # a segment that writes no channel
        sink("out", "d"),
        source("untimed", arrival=None),
        step("e", "untimed"),
        cut("f", "e"),
        sink("last", "f"),
    )
    assert traced_nodes(nodes) == {"s", "a"}


def test_a_channel_carries_them_if_its_reader_writes_another_one() -> None:
    nodes = graph(
        source("s"), cut("c", "s"), step("a", "c"), cut("d", "a"), step("b", "d"), sink("o", "b")
    )
    assert traced_nodes(nodes) == {"s", "c", "a"}


def test_a_loop_carries_them_back_through_the_merge() -> None:
    nodes = graph(
        source("s"),
        source("untimed", arrival=None),
        Channel(name="again", inputs=(), schema=SCHEMA, loop=True),
        Merge(name="all", inputs=("s", "again", "untimed"), schema=SCHEMA),
        step("a", "all"),
        step("back", "a"),
        sink("out", "a"),
        feeds={"again": ["back"]},
    )
    assert traced_nodes(nodes) == {"s", "again", "all", "a", "back"}
