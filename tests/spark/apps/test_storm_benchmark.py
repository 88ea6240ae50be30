"""The five applications of storm-benchmark on Spark: their answers equal a sequential run."""

from pathlib import Path

import pytest

from tidegate.apps.application import Settings
from tidegate.apps.catalogue import application
from tidegate.apps.full_pipeline import FullPipeline
from tidegate.apps.full_source import full_source
from tidegate.apps.run_application import run_application
from tidegate.apps.storm_benchmark import data_clean, page_view
from tidegate.apps.storm_benchmark.topology import Topology
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.spark.state.read import read_state
from tidegate.workload.keys import Keys
from tidegate.workload.parse import parse_profile

pytestmark = pytest.mark.spark

WINDOW = {"window_s": "2", "every_s": "1"}
EXTRA = {"rolling-count": WINDOW, "unique-visitor": WINDOW}


@pytest.mark.parametrize(
    "name, cut",
    [
        ("grep", False),
        ("rolling-count", False),
        ("unique-visitor", True),
        ("page-view", False),
        ("data-clean", False),
    ],
)
def test_the_answers_are_right(spark, name: str, cut: bool) -> None:
    settings = Settings(
        rate=parse_profile("constant:600"), seconds=3.0, cut=cut, extra=EXTRA.get(name, {})
    )
    ran = run_application(spark, application(name), settings, cores=(2, 3))
    assert ran.verdict is not None
    assert ran.verdict.correct, ran.verdict.said
    assert ran.verdict.figures["lines"] == ran.arrived == 1800


@pytest.mark.parametrize(
    "topology, operator", [(page_view.TOPOLOGY, "count"), (data_clean.TOPOLOGY, "filter")]
)
def test_a_topology_runs_behind_a_full_source(
    spark, tmp_path: Path, topology: Topology, operator: str
) -> None:
    settings = Settings(rate=parse_profile("constant:1"), seconds=1.0)

    def build() -> Stream:
        rows = full_source(spark, Keys(1), seed=settings.seed, batch_rows=2000)
        stream = topology.behind(pipeline("full", rows, arrival="timestamp"), settings)
        return stream.to("noop")

    place = str(tmp_path / "checkpoint")
    full = FullPipeline(spark, build, place, operator=operator, tasks=2)
    try:
        full.await_batches(3)
    finally:
        full.stop()
    assert full.rows == 2000 * len(full.results)
    assert [turn.rows for turn in full.turns()] == [2000] * (len(full.results) - 1)
    if topology.keyed is not None:
        assert sum(read_state(place, operator)["count"].to_pylist()) == full.rows
