"""What `Stream.start` takes is what the body takes, and mistakes are told before Spark is asked."""

import inspect

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from tests.helpers.fake_cluster import FakeCluster
from tests.helpers.places import ROOT
from tidegate.control.latency.options import LatencyOptions
from tidegate.errors import AskedWrongly
from tidegate.models.capacity.measured import CapacitySample, MeasuredCapacity
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.loop.assembly import assembly_of
from tidegate.spark.loop.attach import attach
from tidegate.spark.options import (
    AttachOptions,
    StartOptions,
    declared,
    filled,
    markdown,
    option,
)
from tidegate.spark.start import _first_tasks, start
from tidegate.units import parse_duration


class Frame:
    """All that a pipeline asks of a DataFrame before it is started."""

    isStreaming = True  # noqa: N815 (Spark's name)
    schema = StructType([StructField("k", LongType())])

    @property
    def sparkSession(self):  # noqa: N802 (Spark's name)
        raise AssertionError("Spark was asked")


@pytest.mark.parametrize(
    ("function", "kind"),
    [(start, StartOptions), (Stream.start, StartOptions), (attach, AttachOptions)],
)
def test_signature_and_docstring_are_made_from_the_declaration(function, kind):
    parameters = inspect.signature(function).parameters.values()
    shown = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert shown == {name: one.default for name, one in declared(kind).items()}
    assert all(
        f"    {name}: {one.help}" in function.__doc__ for name, one in declared(kind).items()
    )


def test_what_both_calls_have_is_the_same():
    both = declared(StartOptions).keys() & declared(AttachOptions).keys()
    assert {"target", "cores", "executors", "catch_up", "scale_in_after"} <= both
    assert all(option(name, StartOptions) == option(name, AttachOptions) for name in both)


def test_the_docs_have_the_table():
    assert markdown() in (ROOT / "docs" / "options.md").read_text()


def test_the_policies_defaults_are_the_options_defaults():
    given = {name: one.default for name, one in declared(StartOptions).items()}
    assert parse_duration(given["catch_up"]) == LatencyOptions().catch_up_s
    assert parse_duration(given["scale_in_after"]) == LatencyOptions().scale_in_after_s


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"trigger": "soon"}, "^trigger: 'soon' is not a duration; write a positive number"),
        ({"trigger": "2 secnds"}, "unknown unit of time 'secnds'; did you mean 'seconds'"),
        ({"trigger": "0 seconds"}, "^trigger: '0 seconds' is not a positive duration"),
        ({"trigger": "10us"}, "^trigger: '10us' is shorter than a millisecond"),
        ({"tasks": 0}, "^tasks=0: give a whole number of 1 or more"),
        ({"sample_every": 0}, "^sample_every=0: give a whole number of 1 or more"),
        ({"warm_up": "no"}, "^warm_up='no': expected True or False"),
        ({"traget": "2 seconds"}, "no option 'traget'; did you mean 'target'"),
    ],
)
def test_a_wrong_option_is_told_before_anything_starts(tmp_path, wrong, message):
    flow = pipeline("p", Frame()).to(lambda frame, batch_id: None)
    with pytest.raises(AskedWrongly, match=message):
        flow.start(str(tmp_path / "ck"), **wrong)
    assert not (tmp_path / "ck").exists()


@pytest.mark.parametrize(
    "dry_run, cores, tasks", [(False, (1, 40), 20), (False, (1, 8), 8), (True, (1, 8), 20)]
)
def test_a_start_on_a_cluster_begins_with_a_task_for_each_core_that_is_up(dry_run, cores, tasks):
    cluster = FakeCluster(executors=10, **{"spark.executor.cores": "2"})
    options = {"target": "2 seconds", "cores": cores, "dry_run": dry_run}
    assembly = assembly_of(cluster, filled(StartOptions, options))
    assert _first_tasks(cluster, assembly) == tasks


def test_a_capacity_file_is_read_before_anything_starts(tmp_path):
    samples = (CapacitySample(cores=2, rows_per_s=10.0),)
    measured = MeasuredCapacity(pipeline="held", samples=samples)
    measured.write(tmp_path / "capacity.json")
    given = filled(
        StartOptions,
        {
            "target": "2 seconds",
            "executors": (1, 10),
            "policy": "mst-1",
            "capacity": tmp_path / "capacity.json",
        },
    )
    cluster = FakeCluster(executors=10, **{"spark.executor.cores": "2"})
    assert assembly_of(cluster, given).capacity == measured
    with pytest.raises(AskedWrongly, match="no capacity file"):
        assembly_of(cluster, {**given, "capacity": "none.json"})
