"""The pipeline of the simulator: two segments with state, a channel between them, and counts."""

import functools

import pyarrow as pa

import tidegate as tg
from tidegate.pipelines.graph import Channel, Graph, Keyed, Segment, Sink, Source, TaskBounds
from tidegate.pipelines.shedding import Shedding

SHARDS = 4
ROWS = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def _keyed(name: str, inputs: str, rows: pa.Schema, function, shards: int) -> Keyed:
    bound = function.bind(rows, ("k",))
    return Keyed(
        name=name,
        inputs=(inputs,),
        schema=bound.output,
        key=("k",),
        rows=rows,
        bound=bound,
        shards=shards,
        tasks=TaskBounds(1, shards),
    )


@functools.cache
def graph(cut: bool, evolved: bool = False, shards: int = SHARDS) -> Graph:
    """source -> sums -> sink; with a cut, also sums -> channel -> seen -> sink.

    The state of an `evolved` one has another column.
    """
    made = Graph("faults")
    shedding = Shedding(by=None, classes={}, key=(), shards=1)
    made.add(Source(name="source", inputs=(), schema=ROWS, frame=None, shedding=shedding))
    measures = {"n": tg.count(), "total": tg.sum("v")}
    if evolved:
        measures["most"] = tg.max("v")
    sums = _keyed("sums", "source", ROWS, tg.aggregate(**measures), shards)
    made.add(sums)
    made.add(Sink(name="out", inputs=("sums",), schema=sums.schema, write=lambda *_: None))
    if not cut:
        return made
    made.add(Channel(name="between", inputs=("sums",), schema=sums.schema))
    seen = _keyed("seen", "between", sums.schema, tg.count(), shards)
    made.add(seen)
    made.add(Sink(name="end", inputs=("seen",), schema=seen.schema, write=lambda *_: None))
    return made


@functools.cache
def segments(cut: bool, evolved: bool = False, shards: int = SHARDS) -> dict[str, Segment]:
    """The segments, by name."""
    return {segment.name: segment for segment in graph(cut, evolved, shards).segments()}
