"""A trigger as the user writes it, and jobs of which nobody could say when they are done."""

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.errors import AskedWrongly
from tidegate.pipelines.graph import Graph, Source
from tidegate.pipelines.stream import Stream
from tidegate.spark.trigger import AVAILABLE_NOW, ONCE, Trigger

ROWS = pa.schema([("k", pa.int64())])


class Writer:
    """Notes what Spark's writer would be told."""

    def __init__(self) -> None:
        self.told: dict[str, object] = {}

    def trigger(self, **given: object) -> "Writer":
        self.told = given
        return self


@pytest.mark.parametrize(
    "text, reads_sources, told",
    [
        (None, True, {}),
        ("1.5 seconds", True, {"processingTime": "1500 milliseconds"}),
        ("1.5 seconds", False, {"processingTime": "1500 milliseconds"}),
        ("available now", True, {"availableNow": True}),
        ("availableNow", True, {"availableNow": True}),
        ("available now", False, {}),
        ("once", True, {"once": True}),
        ("Once", False, {}),
    ],
)
def test_what_spark_is_told(text, reads_sources, told):
    writer = Writer()
    assert Trigger.of(text).on(writer, reads_sources) is writer
    assert writer.told == told


def test_a_job_has_no_interval():
    assert Trigger.of("availableNow") == Trigger(job=AVAILABLE_NOW)
    assert Trigger.of("once") == Trigger(job=ONCE)
    assert Trigger.of("once").interval_s == 0
    assert Trigger.of("250ms").interval_s == 0.25


def stream() -> Stream:
    graph = Graph("p")
    graph.add(Source(name="in", inputs=(), schema=ROWS, frame=None))
    graph.add(Source(name="other", inputs=(), schema=ROWS, frame=None))
    return Stream(graph, "in")


def test_loops_and_sources_behind_a_cut_are_refused():
    job = Trigger.of("available now")
    first = stream()
    loop = first.loop("again")
    back = first.merge(loop).map(lambda rows: rows, name="step")
    back.feed(loop)
    back.to("noop")
    with pytest.raises(AskedWrongly, match="the pipeline has the loop 'again'"):
        job.check(first.graph)
    first = stream()
    behind = first.map(lambda rows: rows, name="step").cut("cut")
    behind.merge(Stream(first.graph, "other")).to("noop")
    with pytest.raises(AskedWrongly, match="'other' reads a source and a channel"):
        job.check(first.graph)
    Trigger.of("1 second").check(first.graph)
    first = stream()
    first.keyed("n", tg.count(), key="k").cut("cut").to("noop")
    job.check(first.graph)


def test_what_is_no_trigger_is_refused():
    with pytest.raises(AskedWrongly, match="'available now' or 'once' for a job that ends"):
        Trigger.of("available")
