"""Rows carry their origin only between a merge and an operator that has to tell sources apart."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa

import tidegate as tg
from tidegate.pipelines.graph import Graph, Keyed, Map, Merge, Segment, Source, TaskBounds
from tidegate.pipelines.origins import origins_of
from tidegate.spark.batch.map_task import MapStage, mapped_by_origin
from tidegate.spark.batch.worker import ORIGIN, without_ours

ROWS = pa.schema([("k", pa.int64()), ("timestamp", pa.timestamp("us"))])


def source(name: str) -> Source:
    return Source(name=name, inputs=(), schema=ROWS, frame=SimpleNamespace())


def map_(name: str, above: str) -> Map:
    return Map(name=name, inputs=(above,), schema=ROWS, function=lambda rows: rows)


def keyed(name: str, above: str, function=None) -> Keyed:
    bound = (function or tg.window(tg.count(), every="1 minute")).bind(ROWS, ("k",))
    return Keyed(
        name=name,
        inputs=(above,),
        schema=ROWS,
        key=("k",),
        rows=ROWS,
        bound=bound,
        shards=4,
        tasks=TaskBounds(),
    )


def merge(name: str, *above: str) -> Merge:
    return Merge(name=name, inputs=above, schema=ROWS)


def segment(*nodes) -> Segment:
    graph = Graph("p")
    for node in nodes:
        graph.add(node)
    (found,) = graph.segments()
    return found


def test_one_source_needs_nothing():
    found = origins_of(segment(source("a"), map_("m", "a"), keyed("w", "m")))
    assert found.carried == frozenset()


def test_operators_without_event_time_need_nothing():
    nodes = (source("a"), source("b"), merge("ab", "a", "b"), keyed("n", "ab", tg.count()))
    assert origins_of(segment(*nodes)).carried == frozenset()


def test_it_is_carried_from_the_merge_through_maps_to_the_operator():
    count = keyed("n", "ab", tg.count())
    window = keyed("w", "m")
    nodes = (
        source("b"),
        source("a"),
        map_("before", "a"),
        merge("ab", "before", "b"),
        map_("m", "ab"),
        map_("aside", "ab"),
        window,
        count,
    )
    found = origins_of(segment(*nodes))
    assert found.carried == {"ab", "m"}
    assert found.told_apart(window) == ("a", "b")
    assert found.told_apart(count) == ()
    assert [found.names[found.numbers[name]] for name in ("a", "b")] == ["a", "b"]


def test_the_output_of_a_keyed_operator_is_one_origin():
    window, behind = keyed("w", "ab"), keyed("w2", "wc")
    nodes = (
        source("a"),
        source("b"),
        source("c"),
        merge("ab", "a", "b"),
        window,
        merge("wc", "w", "c"),
        behind,
    )
    found = origins_of(segment(*nodes))
    assert found.told_apart(window) == ("a", "b")
    assert found.told_apart(behind) == ("c", "w")


def test_a_map_is_called_for_each_origin_and_its_rows_get_it():
    seen = []

    def doubled(rows: pa.Table) -> pa.Table:
        seen.append(rows)
        return pa.concat_tables([rows, rows]).filter(pa.compute.field("k") > 1)

    schema = pa.schema([("k", pa.int64())])
    rows = pa.table({"k": [1, 2, 3, 4], ORIGIN: np.array([5, 7, 5, 7], dtype=np.int32)})
    parts = mapped_by_origin(MapStage("m", doubled, schema, origins=True), rows)
    result = pa.concat_tables(part.rows for part in parts)
    assert all(table.column_names == ["k"] for table in seen), "the function does not see it"
    assert sorted(zip(result["k"].to_pylist(), result[ORIGIN].to_pylist(), strict=True)) == [
        (2, 7), (2, 7), (3, 5), (3, 5), (4, 7), (4, 7),
    ]  # fmt: skip
    assert without_ours(result).column_names == ["k"]
