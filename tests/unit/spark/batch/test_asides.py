"""Rows that are put aside leave the task beside its output, and can be told from it."""

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.errors import AskedWrongly
from tidegate.pipelines.graph import Aside, Graph, Source
from tidegate.pipelines.origins import origins_of
from tidegate.pipelines.stream import Stream
from tidegate.pipelines.traces import traced_nodes
from tidegate.pipelines.walks import feeders, host
from tidegate.spark.batch.asides import asides_of, put_aside, with_asides

OUT = pa.schema([pa.field("k", pa.int64(), nullable=False), ("n", pa.int64())])
LATE = pa.schema([("k", pa.int64()), pa.field("at", pa.timestamp("us"), nullable=False)])
FAILED = pa.schema([("text", pa.string())])


def test_output_and_both_kinds_come_out_as_they_went_in() -> None:
    output = pa.table({"k": [1, 2], "n": [3, None]}, OUT)
    late = pa.table({"k": [4, None], "at": pa.array([5, 6], pa.timestamp("us"))}, LATE)
    failed = pa.table({"text": ["x"]}, FAILED)
    asides = {"failed": FAILED, "late": LATE}
    table = put_aside(output, asides, {"late": late, "failed": failed})
    assert table.schema == with_asides(OUT, asides)
    assert table.num_rows == 5
    plain = table.filter(pa.compute.and_(table["__late"].is_null(), table["__failed"].is_null()))
    assert plain.select(["k", "n"]).to_pylist() == output.to_pylist()
    for column, rows in (("__late", late), ("__failed", failed)):
        found = [row for row in table[column].to_pylist() if row is not None]
        assert found == rows.to_pylist()


def test_hidden_columns_go_along() -> None:
    output = pa.table({"k": [1], "n": [1], "__trace": [b"a"]})
    late = pa.table({"k": [2], "at": pa.array([1], pa.timestamp("us")), "__trace": [b"b"]})
    table = put_aside(output, {"late": LATE}, {"late": late})
    assert table["__trace"].to_pylist() == [b"a", b"b"]
    assert table["k"].to_pylist() == [1, None], "a column of the same name is not the output's"


def test_without_readers_nothing_changes() -> None:
    output = pa.table({"k": [1], "n": [1]}, OUT)
    assert put_aside(output, {}, {"late": output}) is output


def stream() -> Stream:
    graph = Graph("p")
    rows = pa.schema([("k", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    graph.add(Source(name="in", inputs=(), schema=rows, frame=None, arrival="at"))
    return Stream(graph, "in")


def test_late_rows_are_a_stream_that_goes_on() -> None:
    counted = stream().keyed("w", tg.window(tg.count(), every="1 minute", event_time="at"), key="k")
    late = counted.late()
    assert late.schema.names == ["k", "at"]
    assert counted.late().node == late.node, "asked twice, it is the same stream"
    late.map(lambda rows: rows, name="again").cut("cut").to("noop")
    counted.to("noop", name="out")
    graph = counted.graph
    graph.check()
    (main, behind) = graph.segments()
    assert isinstance(graph.nodes["w_late"], Aside)
    assert set(asides_of(main, "w")) == {"late"}
    assert asides_of(main, "again") == {}
    assert origins_of(main).of["w_late"] == ("w",)
    assert feeders([main, behind], "again") == ("w",)
    assert host(main, graph.nodes["again"]) == "w", "it runs where the operator's rows are"
    assert {"in", "w", "w_late", "again"} <= traced_nodes(graph)


def test_only_operators_with_event_time_have_late_rows() -> None:
    with pytest.raises(AskedWrongly, match="not an operator with event time"):
        stream().late()
    with pytest.raises(AskedWrongly, match="not an operator with event time"):
        stream().keyed("n", tg.count(), key="k").late()
    with pytest.raises(AskedWrongly, match="not an operator with event time"):
        stream().distinct("k", within="1 minute").late()
