"""Calibrations in small: rows are handed out in batches of the size that is asked for."""

import sys
from pathlib import Path

import pytest

from tests.helpers.places import EXAMPLES
from tests.spark.apps.test_examples import load
from tidegate.apps.batch_size import set_batch_rows
from tidegate.apps.capacity.application_flow import application_flow
from tidegate.apps.capacity.batch_times import TimedBatches
from tidegate.apps.capacity.calibrate import calibrate
from tidegate.apps.capacity.measure_cores import BatchGuess, measure_cores
from tidegate.apps.capacity.sample_source import read_sample
from tidegate.apps.capacity.script_flow import script_flow
from tidegate.apps.catalogue import applications
from tidegate.models.capacity.calibration_plan import CalibrationPlan
from tidegate.models.capacity.convergence import Convergence
from tidegate.spark.start import start

pytestmark = pytest.mark.spark

SMALL = CalibrationPlan(
    counts=(1, 2),
    checks=(3,),
    repeats=1,
    batch_s=0.5,
    most=4,
    rule=Convergence(close=1, latest=2, delta=100.0),
    most_samples=3,
)
CAN_BE_FULL = [one.name for one in applications() if one.behind is not None]


@pytest.mark.experiment
def test_an_application_is_measured_on_each_number_of_cores(spark) -> None:
    found = calibrate(spark, application_flow("grep", stretch=True), SMALL)
    assert [(one.cores, one.use) for one in found.runs] == [(1, "fit"), (2, "fit"), (3, "check")]
    assert all(len(one.samples) >= 3 and one.converged for one in found.runs)
    assert found.measured.stretched
    # A line takes 0.5 ms, so no core can do more than 2,000 a second.
    assert all(0.0 < one.rows_per_s <= 2000.0 * one.cores for one in found.runs)
    assert found.rates[3] > found.rates[1]
    assert found.checks[0].predicted.rows_per_s > 0.0


@pytest.mark.experiment
def test_a_script_is_measured_with_recorded_rows_and_writes_nothing(
    spark, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    example = load("ad_views")
    sample = tmp_path / "ad_views.parquet"
    example.record(example.source(spark, 1), str(sample))
    assert read_sample(sample).rows.num_rows == 2000
    text = (EXAMPLES / "ad_views.py").read_text(encoding="utf-8")
    script = tmp_path / "ad_views.py"
    refused = "def refused(frame, batch_id):\n    raise RuntimeError('the sink was called')\n"
    script.write_text(text.replace('.to("console")', ".to(refused)") + "\n\n" + refused)
    flow = script_flow(script, sample)
    assert flow.name == "ad_views"
    found = measure_cores(spark, flow, 2, SMALL, guess=BatchGuess(2000, 0.2))
    assert found.rows_per_s > 0.0 and len(found.samples) >= 2


@pytest.mark.parametrize("name", CAN_BE_FULL)
def test_every_application_takes_batches_of_the_size_that_is_asked_for(
    spark, name: str, tmp_path: Path
) -> None:
    application = next(one for one in applications() if one.name == name)
    for module in application.needs:
        pytest.importorskip(module)
    size_file = tmp_path / "rows"
    set_batch_rows(size_file, 300)
    stream = application_flow(name).behind(spark, size_file, 2)
    run = start(stream.graph, checkpoint=str(tmp_path / "checkpoint"), tasks=2)
    try:
        batches = TimedBatches(run, 180.0)
        assert batches.next().rows == 300
        set_batch_rows(size_file, 451)
        assert batches.next_of(451).seconds > 0.0
    finally:
        run.stop()
