"""Arrivals of an operator's several inputs, each noted by its own arrival column."""

import pyarrow as pa

from tests.unit.pipelines.functions.test_join import KEYS, LEFT, RIGHT, packed, table_of
from tidegate.control.learning.sojourn import SLOT_US
from tidegate.pipelines.functions.join import join_of
from tidegate.pipelines.graph import Graph, Keyed, Map, Merge, Packed, Segment, Source, TaskBounds
from tidegate.spark.batch.compile import arrival_sample
from tidegate.spark.batch.packed import PackedArrivals

FUNCTION = join_of(
    (LEFT, RIGHT),
    KEYS,
    how="inner",
    within=None,
    event_times=("", ""),
    delay="0 s",
    suffix="_right",
    ttl=None,
    what="join",
)
PACKING = FUNCTION.packing


def segment_of(*nodes, left: str, right: str) -> Segment:
    graph = Graph("p")
    bound = FUNCTION.bind(PACKING.schema, ("k",))
    inputs = Packed(name="both", inputs=(left, right), schema=PACKING.schema, packing=PACKING)
    join = Keyed(
        name="join",
        inputs=("both",),
        schema=bound.output,
        key=("k",),
        rows=PACKING.schema,
        bound=bound,
        shards=4,
        tasks=TaskBounds(1, 4),
    )
    for node in (*nodes, inputs, join):
        graph.add(node)
    (segment,) = graph.segments()
    return segment


def source(name: str, schema: pa.Schema, arrival: str | None) -> Source:
    return Source(name=name, inputs=(), schema=schema, frame=None, arrival=arrival)


def sample_of(segment: Segment, every: int = 1):
    join = next(node for node in segment.nodes if isinstance(node, Keyed))
    return arrival_sample(segment, join, every)


def test_each_input_has_its_own_arrival_column() -> None:
    segment = segment_of(
        source("left", LEFT, "at"), source("right", RIGHT, "seen"), left="left", right="right"
    )
    sample = sample_of(segment)
    rows = packed(
        PACKING,
        [
            table_of([("a", 5 * SLOT_US, 1), ("b", None, 2)], LEFT),
            table_of([("a", 9 * SLOT_US + 3, 3), ("a", 5 * SLOT_US, 4)], RIGHT),
        ],
    )
    stamps = sample.of(rows)
    assert stamps.slots.tolist() == [5, 9]
    assert stamps.counts.tolist() == [2, 1]
    assert stamps.beyond_us == 3


def test_only_sources_that_nobody_read_before_are_noted() -> None:
    def before(name: str, above: str, schema: pa.Schema) -> Map:
        return Map(name=name, inputs=(above,), schema=schema, function=lambda table: table)

    left, right = source("left", LEFT, "at"), source("right", RIGHT, "seen")
    mapped = segment_of(left, right, before("m", "left", LEFT), left="m", right="right")
    assert sample_of(mapped) == PackedArrivals("", 1, ((1, PACKING.place(1, "seen")),))
    untimed = segment_of(source("left", LEFT, None), right, left="left", right="right")
    assert sample_of(untimed) == PackedArrivals("", 1, ((1, PACKING.place(1, "seen")),))
    none = segment_of(
        left, right, before("m", "left", LEFT), before("n", "right", RIGHT), left="m", right="n"
    )
    assert sample_of(none) is None
    more = Merge(name="all", inputs=("left", "other"), schema=LEFT)
    merged = segment_of(left, source("other", LEFT, None), right, more, left="all", right="right")
    assert len(sample_of(merged).places) == 2


def test_one_row_in_so_many_of_each_input_is_noted() -> None:
    segment = segment_of(
        source("left", LEFT, "at"), source("right", RIGHT, "seen"), left="left", right="right"
    )
    rows = packed(
        PACKING,
        [
            table_of([("a", SLOT_US, n) for n in range(10)], LEFT),
            table_of([("a", SLOT_US, n) for n in range(20)], RIGHT),
        ],
    )
    assert int(sample_of(segment, every=5).of(rows, 3).counts.sum()) == 6
