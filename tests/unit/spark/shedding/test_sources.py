"""Where a source is shed: in its map's call, in front of a shuffle, or in a stage of its own."""

from dataclasses import replace

import pyarrow as pa
import pytest

from tidegate.control.shedding.keep import Keep
from tidegate.pipelines.functions import count
from tidegate.pipelines.graph import Keyed, Map, Node, Segment, Source, TaskBounds
from tidegate.pipelines.shedding import OTHER, ShedClass, Shedding
from tidegate.spark.batch.plan import BatchPlan
from tidegate.spark.shedding.sources import Intake, ShedSources

ROWS = pa.schema([("id", pa.int64()), ("tier", pa.string()), ("note", pa.string())])
SOURCE = Source(
    name="in",
    inputs=(),
    schema=ROWS,
    frame=None,
    shedding=Shedding(by="tier", classes={"gold": ShedClass(), OTHER: ShedClass()}, unique=("id",)),
)
BOUND = count().bind(ROWS, ("tier",))
KEYED = Keyed(
    name="n",
    inputs=("in",),
    schema=BOUND.output,
    key=("tier",),
    rows=ROWS,
    bound=BOUND,
    shards=4,
    tasks=TaskBounds(1, 4),
)
WHERE_ROWS_ARE = Map(name="m", inputs=("in",), schema=ROWS, function=lambda table: table)
WITH_TASKS = replace(WHERE_ROWS_ARE, tasks=TaskBounds(1, 4))
SHEDS = BatchPlan(7, 1, {}, Keep(0.5, {"gold": 0.9}), {"in": ("id",)})


def sources(*readers: Node, source: Source = SOURCE) -> ShedSources:
    return ShedSources(Segment("main", (source, *readers), (source,), ()), accumulator=None)


@pytest.mark.parametrize("node", [WHERE_ROWS_ARE, WITH_TASKS, KEYED])
def test_nothing_is_added_while_all_rows_are_kept(node: Map | Keyed) -> None:
    plan = BatchPlan(7, 1, {}, unique={"in": ("id",)})
    assert not sources(node).sheds(plan)
    assert sources(node).intake(node, plan) == Intake()


def test_a_map_sheds_in_its_own_call_where_the_rows_are() -> None:
    intake = sources(WHERE_ROWS_ARE).intake(WHERE_ROWS_ARE, SHEDS)
    assert intake.shed is not None
    assert intake.shed.keeps == (0.9, 0.5)
    assert intake.columns == ("*",)


@pytest.mark.parametrize("node", [WITH_TASKS, KEYED])
def test_spark_draws_in_front_of_a_shuffle_where_rows_are_told_apart(node: Map | Keyed) -> None:
    intake = sources(node).intake(node, SHEDS)
    assert intake.shed is not None
    assert intake.columns[-1].endswith("as __kept")
    assert "`tier`" in intake.columns, "the class is needed behind the shuffle"
    (note,) = [column for column in intake.columns if column.endswith("as `note`")]
    assert note.startswith("if("), "a shed row travels without its bulky columns"


@pytest.mark.parametrize("node", [WITH_TASKS, KEYED])
def test_else_a_stage_of_its_own_sheds(node: Map | Keyed) -> None:
    drawn_by_content = replace(SHEDS, unique={})
    assert sources(node).intake(node, drawn_by_content) == Intake()
    other = replace(node, name="other")
    assert sources(node, other).intake(node, SHEDS) == Intake(), "two read it: shed once, before"


def test_classes_are_counted_by_the_first_reader_alone() -> None:
    found = sources(WHERE_ROWS_ARE, KEYED)
    stage = found.classes_counted_by(WHERE_ROWS_ARE)
    assert stage is not None and stage.classes == ("gold", OTHER)
    assert found.classes_counted_by(KEYED) is None
    plain = sources(KEYED, source=replace(SOURCE, shedding=None))
    assert plain.classes_counted_by(KEYED) is None
    assert plain.stages["in"].key == ("tier",), "counted by the shards of its keyed reader"
