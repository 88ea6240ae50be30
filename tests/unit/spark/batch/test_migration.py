"""A checkpoint and a changed pipeline: what is refused, and how the user may go on."""

import json

import pytest
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.pipelines import functions as tg
from tidegate.pipelines.defaults import default_of
from tidegate.pipelines.keyed import Update
from tidegate.pipelines.stream import pipeline
from tidegate.spark.batch.checkpoint import Checkpoint, describe
from tidegate.spark.batch.kept_names import KeptNames, fresh_name
from tidegate.spark.batch.migration import Migration, idle
from tidegate.spark.state.files import Durable

TYPES = {
    "int": IntegerType(),
    "string": StringType(),
    "long": LongType(),
    "double": DoubleType(),
    "timestamp": TimestampType(),
}


def columns(ddl):
    """A schema without a JVM to parse it."""
    pairs = (column.split() for column in ddl.split(", "))
    return StructType([StructField(name, TYPES[kind]) for name, kind in pairs])


class Frame:
    """All that a pipeline asks of a DataFrame before it is started."""

    isStreaming = True  # noqa: N815 (Spark's name)

    def __init__(self, ddl="k string, v long, timestamp timestamp"):
        self.schema = columns(ddl)


def add_up(rows, state):
    return Update()


def add_up_faster(rows, state):
    return Update()


def keyed(function, name="op", frame=None, **options):
    """The graph of a pipeline with one keyed operator."""
    return pipeline("p", frame or Frame()).keyed(name, function, key="k", **options).graph


def own(function, **options):
    return keyed(function, state=columns("n long"), output=columns("k string, n long"), **options)


@pytest.fixture
def opened(tmp_path):
    """Opens one checkpoint again and again, and gives its description."""

    def with_graph(graph, **declared):
        place = Checkpoint(Durable(str(tmp_path / "ck")))
        given = {"renamed": None, "dropped": (), "same_state": (), **declared}
        found = place.open(graph, Migration.declared(**given))
        assert found.description() == place.description()
        return found

    return with_graph


CHANGED = [
    (
        lambda: keyed(tg.window(tg.count(), every="10 seconds")),
        lambda: keyed(tg.window(tg.count(), every="25 seconds")),
        r"'op' had the function window\(count\(\), every=10 s, .*, now window\(count\(\), every=25",
    ),
    (
        lambda: keyed(tg.sum("v", as_="x")),
        lambda: keyed(tg.max("v", as_="x")),
        r"'op' had the function sum\(column='v'\), now max\(column='v'\)",
    ),
    (lambda: own(add_up), lambda: own(add_up_faster), r"test_migration.add_up, now .*add_up_fas"),
    (lambda: own(add_up), lambda: keyed(tg.count(as_="n")), r"add_up, now count\(\)"),
    (lambda: own(add_up), lambda: own(add_up, order_by="v"), "had order_by=None, now 'v'"),
    (
        lambda: own(add_up),
        lambda: own(add_up, frame=Frame("k string, v double")),
        "read the column 'v' as int64, now as double",
    ),
]


@pytest.mark.parametrize(("before", "after", "said"), CHANGED)
def test_a_changed_meaning_is_refused_with_the_ways_on(tmp_path, opened, before, after, said):
    opened(before())
    written = (tmp_path / "ck" / "pipeline.json").read_bytes()
    with pytest.raises(AskedWrongly, match=said) as refused:
        opened(after())
    assert "same_state=['op']" in str(refused.value)
    assert "dropped=['op']" in str(refused.value)
    assert "nothing was changed" in str(refused.value)
    assert (tmp_path / "ck" / "pipeline.json").read_bytes() == written


@pytest.mark.parametrize(("before", "after", "said"), CHANGED)
def test_a_changed_meaning_is_accepted_once_when_it_is_declared(opened, before, after, said):
    opened(before())
    assert opened(after(), same_state=["op"]).names.kept("op") == "op"
    opened(after())  # the declaration is no longer needed
    with pytest.raises(AskedWrongly):
        opened(before())


def kept(state, **options):
    return keyed(add_up, state=columns(state), output=columns("k string, n long"), **options)


def test_another_timer_is_refused_and_a_first_one_is_not(opened):
    state = "n long, soon timestamp, later timestamp"
    opened(kept(state))
    opened(kept(state, timer="soon", clock="processing"))
    with pytest.raises(
        AskedWrongly, match="'op' had the timer 'soon', now 'later'; start with dro"
    ):
        opened(kept(state, timer="later", clock="processing"))
    opened(kept(state, timer="later", clock="processing"), dropped=["op"])
    opened(kept(state))


def test_new_and_wider_columns_are_accepted_and_older_layouts_stay_known(opened, tmp_path, caplog):
    assert opened(kept("n int")).description()["format"] == 1
    place = opened(kept("n long, seen double", defaults={"seen": 1.5}))
    assert "'seen' is new, 'n' was int32 and is int64; older files are read so" in caplog.text
    (first,) = place.earlier["op"]
    assert [str(first.field(name).type) for name in ("k", "n")] == ["string", "int32"]
    found = place.description()
    assert found["format"] == 2
    for _ in range(2):  # another default later does not change what a row is that has the first
        place = opened(kept("n long, seen double", defaults={"seen": 99.0}))
        assert place.description() == found
    place = opened(kept("n long, seen double, more string", defaults={"more": None}))
    assert len(place.earlier["op"]) == 2
    assert default_of(place.earlier["op"][1].field("seen")).as_py() == 1.5


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (lambda: kept("n int"), "state column 'n' as int64, now as int32, in which not every"),
        (lambda: kept("n double"), "state column 'n' as int64, now as double, in which not every"),
        (
            lambda: kept("m long"),
            r"no longer has the state column 'n'; start with dropped=\['op.n'",
        ),
        (lambda: kept("n long, m long"), r"new state column 'm'; say what .*defaults=\{'m': 0\}"),
    ],
)
def test_columns_that_old_rows_cannot_have_are_refused(tmp_path, opened, after, said):
    opened(kept("n long"))
    written = (tmp_path / "ck" / "pipeline.json").read_bytes()
    with pytest.raises(AskedWrongly, match=f"{said}.*begin afresh.*nothing was changed"):
        opened(after())
    assert (tmp_path / "ck" / "pipeline.json").read_bytes() == written


def test_a_column_is_given_up_by_declaration(opened):
    opened(kept("n long, m long"))
    place = opened(kept("n long"), dropped=["op.m"])
    assert [layout.names[-2:] for layout in place.earlier["op"]] == [["n", "m"]]
    declared = Migration(dropped=frozenset(["op.m"]))
    assert idle(place.description(), describe(kept("n long")), declared) == ["op.m"]


def test_an_aggregate_and_its_windows_get_measures_without_a_declaration(opened):
    def two():
        return tg.aggregate(n=tg.count(), total=tg.sum("v"))

    def three():
        return tg.aggregate(n=tg.count(), total=tg.sum("v"), most=tg.max("v"))

    opened(keyed(two()))
    assert len(opened(keyed(three())).earlier["op"]) == 1
    with pytest.raises(AskedWrongly, match="no longer has the state column 'most'"):
        opened(keyed(two()))
    with pytest.raises(AskedWrongly, match="had the function aggregate"):
        opened(keyed(tg.aggregate(n=tg.count("v"), total=tg.sum("v"), most=tg.max("v"))))


def test_windows_get_measures_without_a_declaration(opened):
    def windows(*more):
        measures = {"n": tg.count(), **{f"most_{column}": tg.max(column) for column in more}}
        return keyed(tg.window(tg.aggregate(**measures), every="1 minute"))

    opened(windows("v"))
    assert len(opened(windows("v", "timestamp")).earlier["op"]) == 1


def test_a_checkpoint_of_a_newer_release_is_refused(opened, tmp_path):
    opened(kept("n long"))
    path = tmp_path / "ck" / "pipeline.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 3}))
    with pytest.raises(TidegateError, match=r"newer release of Tidegate: it has format 3, .* to 2"):
        opened(kept("n long"))


def test_dropped_begins_afresh_and_acts_once(opened, caplog):
    opened(keyed(tg.sum("v", as_="x")))
    afresh = keyed(tg.max("v", as_="x"))
    assert opened(afresh, dropped="op").names.kept("op") == "op.2"
    assert "the state of 'op' in the checkpoint is forgotten, as declared" in caplog.text
    caplog.clear()
    assert opened(afresh, dropped=["op"]).names.kept("op") == "op.2"
    assert opened(afresh).names.kept("op") == "op.2"
    assert not caplog.text
    assert opened(keyed(tg.min("v", as_="x")), dropped=["op"]).names.kept("op") == "op.3"


def test_a_declaration_that_has_acted_is_found_so_that_it_can_be_removed(opened):
    old, new = keyed(tg.sum("v", as_="x")), keyed(tg.max("v", as_="x"))
    found = opened(old).description()
    for kind in ("dropped", "same_state"):
        declared = Migration(**{kind: frozenset(["op", "other"])})
        assert idle(found, describe(new), declared) == ["other"]
        assert idle(found, describe(old), declared) == ["op", "other"]
        assert idle(None, describe(new), declared) == ["op", "other"]


@pytest.mark.parametrize(
    "after",
    [
        lambda: own(add_up, ttl="1 hour"),
        lambda: own(add_up, tasks=4),
        lambda: own(add_up, frame=Frame("k string, more long, v long")),
        lambda: own(add_up, frame=Frame("k string")),
        lambda: own(lambda rows, state: Update()),
    ],
)
def test_harmless_changes_are_accepted(opened, after):
    opened(own(add_up))
    assert opened(after()).names.kept("op") == "op"


def test_a_gone_operator_is_refused_with_the_name_that_it_probably_has_now(opened):
    opened(keyed(tg.count()))
    with pytest.raises(AskedWrongly, match=r"renamed=\{'op': 'per_key'\}.*dropped=\['op'\]"):
        opened(keyed(tg.count(), name="per_key"))


def test_a_renamed_operator_keeps_its_state_under_the_old_name(opened):
    opened(keyed(tg.count()))
    renamed = keyed(tg.count(), name="per_key")
    for declared in ({"op": "per_key"}, {"op": "per_key"}, None):  # it may stay in the program
        place = opened(renamed, renamed=declared)
        assert place.names.kept("per_key") == "op"
        assert place.state("per_key").url.endswith("/state/op")
    again = keyed(tg.count(), name="third")
    assert opened(again, renamed={"per_key": "third"}).names.kept("third") == "op"


def test_a_new_operator_with_the_left_name_gets_state_of_its_own(opened):
    opened(keyed(tg.count()))
    flow = pipeline("p", Frame())
    flow.keyed("per_key", tg.count(), key="k")
    flow.keyed("op", tg.count(), key="k")
    place = opened(flow.graph, renamed={"op": "per_key"})
    assert (place.names.kept("per_key"), place.names.kept("op")) == ("op", "op.2")
    place = opened(flow.graph, renamed={"op": "per_key"})
    assert (place.names.kept("per_key"), place.names.kept("op")) == ("op", "op.2")


def two(first: str, second: str):
    flow = pipeline("p", Frame())
    flow.keyed(first, tg.count(), key="k")
    flow.keyed(second, tg.count(), key="k")
    return flow.graph


def test_renames_may_form_a_chain_but_no_circle(opened):
    opened(two("a", "b"))
    with pytest.raises(AskedWrongly, match="goes round in a circle at 'a'"):
        opened(two("b", "a"), renamed={"a": "b", "b": "a"})
    with pytest.raises(AskedWrongly, match="it holds state of both 'a' and 'b'"):
        opened(two("b", "c"), renamed={"a": "b"})
    for _ in range(2):
        place = opened(two("b", "c"), renamed={"a": "b", "b": "c"})
        assert (place.names.kept("b"), place.names.kept("c")) == ("a", "b")


def test_a_lost_description_is_not_taken_for_a_new_checkpoint(opened, tmp_path):
    opened(keyed(tg.count()))
    (tmp_path / "ck" / "segments" / "main").mkdir(parents=True)
    (tmp_path / "ck" / "pipeline.json").unlink()
    with pytest.raises(AskedWrongly, match="earlier runs, but its pipeline"):
        opened(keyed(tg.count()))


def test_a_map_does_not_take_the_name_of_kept_state(opened):
    opened(keyed(tg.count()))
    flow = pipeline("p", Frame()).map(lambda table: table, name="op", tasks=2)
    flow.keyed("per_key", tg.count(), key="k")
    with pytest.raises(AskedWrongly, match="state of operator 'per_key' is kept; give the step"):
        opened(flow.graph, renamed={"op": "per_key"})


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"renamed": {"op": "per_kye"}}, "no keyed operator 'per_kye'; did you mean 'per_key'"),
        ({"renamed": ["op"]}, "give a mapping such as"),
        ({"renamed": {"op": "per_key", "b": "per_key"}}, "two operators get the same name"),
        ({"dropped": ["po"]}, "which the pipeline no longer has"),
    ],
)
def test_a_wrong_declaration_is_refused(opened, declared, said):
    opened(keyed(tg.count()))
    with pytest.raises(AskedWrongly, match=said):
        opened(keyed(tg.count(), name="per_key"), **declared)


def test_sources_in_another_order_are_refused(opened):
    def two(first, second):
        one = pipeline("p", Frame())
        streams = {"a": None, "b": None}
        for name in (first, second):
            streams[name] = one.source(Frame(), name=name)
        return one.merge(streams["a"], streams["b"]).keyed("op", tg.count(), key="k").graph

    opened(two("a", "b"))
    with pytest.raises(AskedWrongly, match="read source and a and b in this order, now source and"):
        opened(two("b", "a"))


def test_a_dropped_segment_does_not_come_back_under_its_name(opened):
    def cut(*names):
        flow = pipeline("p", Frame())
        for name in names:
            flow = flow.cut(name).map(lambda table: table)
        return flow.keyed("op", tg.count(), key="k").graph

    opened(cut("one", "two"))
    with pytest.raises(AskedWrongly, match="operator 'op' was in segment 'two' and now"):
        opened(cut("one"))
    with pytest.raises(AskedWrongly, match=r"segment 'two', .* start with dropped=\['two'\]"):
        opened(cut("one"), dropped=["op"])
    assert opened(cut("one"), dropped=["op", "two"]).names.kept("op") == "op.2"
    with pytest.raises(AskedWrongly, match="the segment 'two' was dropped"):
        opened(cut("one", "two"), dropped=["op"])


def test_a_dropped_segment_takes_the_state_of_its_operators_along(opened):
    flow = pipeline("p", Frame())
    flow.to(lambda frame, batch_id: None)
    both = flow.cut("later").keyed("op", tg.count(), key="k").graph
    opened(both)
    alone = pipeline("p", Frame()).to(lambda frame, batch_id: None).graph
    with pytest.raises(AskedWrongly, match="holds state of operator 'op'"):
        opened(alone)
    opened(alone, dropped=["later"])
    assert "op" in opened(alone).description()["retired"]


def test_a_checkpoint_of_an_earlier_version_is_accepted_and_gets_the_new_fields(tmp_path, opened):
    opened(keyed(tg.sum("v", as_="x")))
    file = tmp_path / "ck" / "pipeline.json"
    document = json.loads(file.read_text())
    del document["reads"]
    for name in ("function", "order_by", "ttl_us", "rows"):
        del document["operators"]["op"][name]
    file.write_text(json.dumps(document))
    place = opened(keyed(tg.sum("v", as_="x")))
    assert place.description()["operators"]["op"]["function"]["function"] == "sum"
    with pytest.raises(AskedWrongly, match="now max"):
        opened(keyed(tg.max("v", as_="x")))


def test_names_are_translated_both_ways_and_dropped_state_does_not_come_back():
    names = KeptNames({"per_key": "op", "op": "op.2"})
    assert names.to_kept({"per_key": 1, "op": 2, "c": 3}) == {"op": 1, "op.2": 2, "c": 3}
    assert names.from_kept({"op": 1, "op.2": 2, "c": 3}) == {"per_key": 1, "op": 2, "c": 3}
    afresh = KeptNames({"op": "op.2"})
    assert afresh.from_kept({"op": "old"}) == {}
    assert fresh_name("op", {"op", "op.2"}) == "op.3"
