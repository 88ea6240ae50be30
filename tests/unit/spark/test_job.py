"""A job is done when its sources' queries have ended and every channel is read to its end."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tidegate.pipelines.graph import Graph, Segment, Source
from tidegate.pipelines.stream import Stream
from tidegate.spark.batch.channel import Log
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.job import Job, committed_ends
from tidegate.spark.state.files import Durable


def segments() -> tuple[Segment, ...]:
    """source -> one -> two."""
    graph = Graph("p")
    graph.add(Source(name="in", inputs=(), schema=pa.schema([("k", pa.int64())]), frame=None))
    behind = Stream(graph, "in").map(lambda rows: rows, name="a").cut("one")
    behind.map(lambda rows: rows, name="b").cut("two").to("noop")
    return graph.segments()


class World:
    """The files that the queries of such a pipeline write."""

    def __init__(self, root: Path) -> None:
        self.checkpoint = Checkpoint(Durable(str(root)))
        self.job = Job.of(segments(), self.checkpoint)
        for name in ("one", "two"):
            Log(self.checkpoint.channel(name)).make()

    def hand_over(self, channel: str, batch: int, previous: int) -> None:
        log = Log(self.checkpoint.channel(channel))
        log.commit(batch, previous, [(f"{batch:010d}-x.arrow", 1)])

    def has_read(self, segment: str, batch: int, end: int, *, committed: bool = True) -> None:
        spark = self.checkpoint.segment(segment).below("spark")
        for name in ("offsets", "commits"):
            spark.below(name).make()
        lines = [
            "v1",
            json.dumps({"batchWatermarkMs": 0, "conf": {}}),
            json.dumps({"batches": end}),
        ]
        spark.below("offsets").write(str(batch), "\n".join(lines).encode())
        if committed:
            spark.below("commits").write(str(batch), b"v1\n{}")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_it_runs_while_the_sources_queries_run(world: World) -> None:
    assert world.job.sources == {"main"}
    assert not world.job.done([])
    assert world.job.done(["main"]), "nothing was written into the channels"


def test_every_channel_must_be_read_to_its_end(world: World) -> None:
    world.hand_over("one", 0, -1)
    world.hand_over("one", 3, 0)
    assert not world.job.done(["main"])
    world.has_read("one", 0, 1)
    assert not world.job.done(["main"])
    world.has_read("one", 1, 4, committed=False)
    assert not world.job.done(["main"]), "the batch still runs"
    world.hand_over("two", 1, -1)
    world.has_read("one", 1, 4)
    assert not world.job.done(["main"]), "what it wrote is not read"
    world.has_read("two", 0, 2)
    assert world.job.done(["main"])


def test_a_channel_that_grows_meanwhile_is_looked_at_again(world: World, monkeypatch) -> None:
    """The reader of the first channel writes the second one just after that was looked at."""
    world.hand_over("one", 0, -1)
    world.hand_over("two", 0, -1)
    world.has_read("two", 0, 1)
    plain = Job._read_to_the_end

    def late(self: Job, segment: str, lengths) -> bool:
        if segment == "one":
            world.hand_over("two", 1, 0)
            world.has_read("one", 0, 1)
        return plain(self, segment, lengths)

    monkeypatch.setattr(Job, "_read_to_the_end", late)
    assert not world.job.done(["main"])
    assert not world.job.done(["main"]), "it is not read to its new end"
    world.has_read("two", 1, 2)
    assert world.job.done(["main"])


def test_a_query_behind_a_cut_that_ends_by_itself_breaks_it(world: World) -> None:
    assert not world.job.broken(["main"])
    assert world.job.broken(["main", "one"])


def test_a_source_without_an_offset_has_read_nothing(world: World) -> None:
    spark = world.checkpoint.segment("one").below("spark")
    world.has_read("one", 0, 7)
    spark.below("offsets").write("0", b'v1\n{"batchWatermarkMs":0}\n-')
    assert committed_ends(spark) == [0]
    assert committed_ends(world.checkpoint.segment("two").below("spark")) == []
