"""The pure parts of `bench growth`: the fit, the aims, and the driver without Spark."""

import itertools

import numpy as np
import pytest
from benchmarks import growth
from benchmarks.growth_bodies.age import ages, files_of
from benchmarks.growth_bodies.curve import Curve, curves, exponent
from benchmarks.growth_bodies.imitated import ImitatedPipeline, Shape, parts_of
from hypothesis import given
from hypothesis import strategies as st

from tidegate.benching import Options
from tidegate.errors import AskedWrongly
from tidegate.spark.state.layout import file_schema
from tidegate.spark.state.read import read_version


@given(st.floats(-2.0, 3.0), st.floats(1e-3, 1e3))
def test_the_exponent_of_a_power_is_found(power: float, factor: float) -> None:
    xs = (2.0, 8.0, 32.0, 512.0)
    assert exponent(xs, [factor * x**power for x in xs]) == pytest.approx(power, abs=1e-9)


@pytest.mark.parametrize(
    ("xs", "ys"), [((1.0, 1.0), (1.0, 2.0)), ((1.0, 2.0), (0.0, 1.0)), ((1.0,), (1.0,))]
)
def test_what_has_no_exponent_is_refused(xs, ys) -> None:
    with pytest.raises(AskedWrongly, match="no exponent"):
        exponent(xs, ys)


def test_a_curve_that_is_too_steep_misses_its_aim() -> None:
    linear = Curve("tasks", "driver", (2.0, 4.0, 8.0), (2.0, 4.0, 8.0))
    steep = Curve("tasks", "driver", (2.0, 4.0, 8.0), (1.0, 2.5, 9.0))
    assert linear.at_most_linear().met and not steep.at_most_linear().met
    assert linear.growth == 4.0 and not linear.flat().met
    assert Curve("shards", "driver", (256.0, 8192.0), (5.0, 5.4)).flat().met
    bent = Curve("tasks", "driver", (2.0, 4.0, 8.0), (10.0, 10.0, 40.0))
    assert bent.exponent < 1.1 < bent.steepest == pytest.approx(2.0)


def test_points_become_one_curve_for_each_part() -> None:
    found = curves("tasks", [(8.0, {"a": 0.004, "b": 1.0}), (2.0, {"a": 0.001, "b": 1.0})])
    assert [(one.part, one.xs, one.ms) for one in found] == [
        ("a", (2.0, 8.0), (1.0, 4.0)),
        ("b", (2.0, 8.0), (1000.0, 1000.0)),
    ]
    assert found[0].row()["exponent"] == 1.0


def test_every_curve_has_an_aim() -> None:
    made = [
        Curve(by, part, (1.0, 2.0), (1.0, 1.0))
        for by, parts in growth._JUDGED.items()
        for part in parts
    ]
    assert len(growth.aims_of(made)) == len(made)
    flat = [aim.name for aim in growth.aims_of(made) if aim.aim == "<= 1.1"]
    assert [name.split(",")[0] for name in flat] == ["shards"] * 2 + ["batches"] * 4 + [
        "shards on Spark"
    ]


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"curves": "tasks"}, "no option '--curves'; did you mean 'curve'?"),
        ({"curve": "task"}, "no curve 'task'; did you mean 'tasks'?"),
        ({"keys": "many"}, "--keys many is not possible"),
        ({"keys": "5"}, "--keys 5 is not possible"),
    ],
)
def test_what_cannot_be_measured_is_refused(extra, said: str) -> None:
    with pytest.raises(AskedWrongly) as error:
        growth.asked_of(Options(extra=extra))
    assert said in str(error.value)


def test_a_place_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AskedWrongly, match="is not a directory"):
        growth.place_of(Options(extra={"place": "/there/is/none"}))


def test_the_driver_without_spark_keeps_the_state_of_all_its_rows(tmp_path) -> None:
    pipeline = ImitatedPipeline(tmp_path, Shape(tasks=3, shards=16, operators=2, keys=50, rows=40))
    spent = [pipeline.batch() for _ in range(12)]
    parts = parts_of(spent)
    assert all(value > 0.0 for value in parts.values()) and spent[-1].packed_bytes > 1000
    for node in pipeline.segment.keyed:
        last = pipeline.transactions.manifests.load(11).versions[node.name]
        folder = pipeline.checkpoint.state(node.name)
        schema = file_schema(node.key_schema, node.bound)
        table = read_version(folder, last, ["k"], None, 0, schema)
        drawn = np.random.default_rng(0)
        keys = np.concatenate([drawn.integers(0, 50, 40) for _ in range(12)])
        counted = dict(zip(*np.unique(keys, return_counts=True), strict=True))
        assert {row["k"]: row["count"] for row in table.to_pylist()} == counted
    assert pipeline.transactions.manifests.committed() == [9, 10, 11]


def test_a_checkpoint_does_not_grow_with_its_age(tmp_path) -> None:
    files = []
    for age, parts in ages(tmp_path, [80, 400], lambda _: None):
        files.append(files_of(tmp_path))
        assert set(parts) == {"start", "commit", "tick", "task", "list"} and age in (80, 400)
    assert files[1] <= files[0] + 100, "Spark keeps a hundred entries of each of its logs"


def test_a_restart_goes_on_with_the_checkpoint(tmp_path) -> None:
    shape = Shape(tasks=2, shards=8, keys=20, rows=10)
    first = ImitatedPipeline(tmp_path, shape)
    for _, keys in zip(range(5), itertools.repeat(np.arange(20)), strict=False):
        first.batch(keys)
    again = ImitatedPipeline(tmp_path, shape, first_batch=5)
    again.batch(np.arange(20))
    (node,) = again.segment.keyed
    version = again.transactions.manifests.load(5).versions[node.name]
    schema = file_schema(node.key_schema, node.bound)
    table = read_version(again.checkpoint.state(node.name), version, ["k"], None, 0, schema)
    assert set(table["count"].to_pylist()) == {6} and table.num_rows == 20
