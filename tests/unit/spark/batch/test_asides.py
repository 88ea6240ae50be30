"""Rows that are put aside leave the task beside its output, and can be told from it."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.errors import AskedWrongly
from tidegate.pipelines.graph import Aside, Graph, Source
from tidegate.pipelines.on_error import failed_rows
from tidegate.pipelines.origins import origins_of
from tidegate.pipelines.stream import Stream
from tidegate.pipelines.traces import traced_nodes
from tidegate.pipelines.walks import feeders, host
from tidegate.spark.batch.asides import asides_of, put_aside, with_asides
from tidegate.spark.batch.keyed_task import KeyedStage, KeyedTask
from tidegate.spark.batch.traces import FIELD, Marks
from tidegate.spark.batch.worker import HASH, ORDER, TASK, TRACE, packed
from tidegate.spark.state.files import Durable
from tidegate.spark.state.node_cache import NodeCache
from tidegate.spark.state.packed_version import PackedVersion
from tidegate.spark.state.task import Keeper
from tidegate.spark.state.version import Version

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


class Told:
    def __init__(self) -> None:
        self.reports: list = []

    def add(self, reports: list) -> None:
        self.reports += reports


def test_a_task_puts_late_and_failed_rows_beside_its_output(tmp_path) -> None:
    rows = pa.schema([("k", pa.int64()), ("at", pa.timestamp("us", "UTC"))])
    bound = tg.window(tg.count(), every="1 minute", event_time="at").bind(rows, ("k",))
    plain = bound.update

    def update(batch: tg.KeyedBatch) -> tg.Update:
        if 13 in batch.keys["k"].to_pylist():
            raise ValueError("an unlucky key")
        return plain(batch)

    folder = Durable(str(tmp_path / "state"))
    folder.make()
    keeper = Keeper(
        operator="w",
        key=pa.schema([rows.field("k")]),
        bound=replace(bound, update=update),
        cache=NodeCache(str(tmp_path / "cache"), folder, 4),
    )
    asides = {"failed": failed_rows(rows, "w"), "late": rows}
    stage = KeyedStage(keeper, rows, None, traced=True, skips=True, asides=asides)
    version = Version.empty(4).after([], {"": 100_000_000}, 0)
    told = Told()
    task = KeyedTask(
        packed(stage), 1, 5, PackedVersion.of(version), np.zeros(4, dtype=np.int32), told
    )
    keys, seconds = [1, 2, 13, 2, 1], [110, 10, 120, 130, 20]
    marks = Marks(np.arange(5), np.arange(5) + 100)
    given = pa.table(
        {
            "k": keys,
            "at": pa.array([s * 1_000_000 for s in seconds], pa.int64()).cast(
                rows.field("at").type
            ),
            HASH: np.array(keys, dtype=np.int64) << 20,
            ORDER: np.arange(5),
            TASK: np.zeros(5, dtype=np.int32),
            TRACE: marks.column(5),
        }
    )
    table = task(pa.table({TASK: [0]}), given)
    columns = with_asides(bound.output.append(FIELD), asides)
    assert table.schema.names == columns.names
    assert table.schema.types == columns.types
    late = table.filter(table["__late"].is_valid())
    assert [row["k"] for row in late["__late"].to_pylist()] == [2, 1]
    assert Marks.of(late.select([TRACE])).traces.tolist() == [101, 103, 100, 104], "by key"
    (failed,) = table.filter(table["__failed"].is_valid())["__failed"].to_pylist()
    assert (failed["k"], failed["_error"]) == (13, "ValueError: an unlucky key")
    output = table.filter(pa.compute.and_(table["__late"].is_null(), table["__failed"].is_null()))
    assert output.num_rows == 0, "no window has closed yet"
    (report,) = told.reports
    assert (report.rows_in, report.rows_out) == (5, 0)
    assert (report.late_rows, report.skipped_rows) == (2, 1)
