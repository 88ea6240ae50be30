"""The graph of a pipeline: which names it takes, and that no segment is lost."""

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.pipelines.functions import count
from tidegate.pipelines.graph import Channel, Graph, Map, Sink, Source
from tidegate.pipelines.stream import pipeline

ROWS = pa.schema([("k", pa.int64())])


class Frame:
    """All that a pipeline asks of a DataFrame before it is started."""

    isStreaming = True  # noqa: N815 (Spark's name)
    schema = StructType([StructField("k", LongType())])


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (lambda flow: flow.cut("main"), "the cut 'main' would name a segment"),
        (lambda flow: flow.loop("main"), "the loop 'main' would name a segment"),
        (lambda flow: flow.source(Frame(), name="main"), "the source 'main' would name a segment"),
    ],
)
def test_the_name_of_the_first_segment_is_reserved(step, said):
    with pytest.raises(AskedWrongly, match=said):
        step(pipeline("p", Frame()))


def test_an_operator_may_be_called_main_because_it_names_no_segment():
    flow = pipeline("p", Frame()).map(lambda table: table, name="main")
    flow.cut("later").to(lambda frame, batch_id: None)
    assert [segment.name for segment in flow.graph.segments()] == ["main", "later"]


def test_two_segments_of_one_name_are_never_returned():
    """Whatever gets past the check of names: a segment must not disappear in silence."""
    graph = Graph("p")
    graph.add(Source(name="source", inputs=(), schema=ROWS, frame=None))
    graph.add(Map(name="m", inputs=("source",), schema=ROWS, function=lambda table: table))
    graph.nodes["main"] = Channel(name="main", inputs=("m",), schema=ROWS)
    graph.add(Sink(name="end", inputs=("main",), schema=ROWS, format="noop"))
    with pytest.raises(TidegateError, match="two segments of pipeline 'p' have the same name"):
        graph.segments()


def test_a_channel_that_leads_straight_into_another_is_refused():
    flow = pipeline("p", Frame())
    flow.cut("one").cut("two").to(lambda frame, batch_id: None)
    with pytest.raises(AskedWrongly, match="'one' leads straight into 'two'"):
        flow.graph.check()


class Timed:
    """A stream with an event time."""

    isStreaming = True  # noqa: N815 (Spark's name)
    schema = StructType([StructField("k", LongType()), StructField("timestamp", TimestampType())])


def test_a_join_is_one_operator_behind_both_inputs():
    flow = pipeline("p", Timed())
    other = flow.source(Timed(), name="other")
    both = flow.join(other, key="k", within="1 minute")
    assert both.node == "join"
    assert both.schema.names == ["k", "timestamp", "timestamp_right"]
    graph = both.graph
    assert graph.nodes["join"].inputs == ("join_inputs",)
    assert graph.nodes["join_inputs"].inputs == ("source", "other")
    assert [segment.name for segment in graph.segments()] == ["main"]
    again = flow.join(flow, key="k", within="1 minute", suffix="_too")
    assert again.schema.names == ["k", "timestamp", "timestamp_too"]
    assert graph.nodes["join_2_inputs"].inputs == ("source", "source")


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (lambda flow: flow.join(pipeline("q", Timed()), key="k"), "belongs to another pipeline"),
        (lambda flow: flow.join("other", key="k"), "expected another stream"),
        (lambda flow: flow.join(flow, key="kk"), "no column 'kk'"),
        (lambda flow: flow.keyed("n", count(), key="k", others=flow), "merge the streams"),
        (
            lambda flow: flow.keyed("n", len, key="k", others=[flow], order_by="k"),
            "order_by goes with one input",
        ),
        (lambda flow: flow.enrich(Timed(), key="k"), "is a stream"),
        (lambda flow: flow.enrich(flow, key=["k", "timestamp"]), "nothing to add"),
    ],
)
def test_several_inputs_that_do_not_fit_are_refused(step, said):
    with pytest.raises(AskedWrongly, match=said):
        step(pipeline("p", Timed()))
