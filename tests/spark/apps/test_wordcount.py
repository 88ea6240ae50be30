"""WordCount end to end: at a rate, and behind a source that is always full."""

from pathlib import Path

import pytest

from tidegate.apps.application import Settings
from tidegate.apps.full_pipeline import FullPipeline
from tidegate.apps.full_source import full_source
from tidegate.apps.run_application import run_application
from tidegate.apps.wordcount.application import APPLICATION, COUNT, flow
from tidegate.pipelines.stream import pipeline
from tidegate.workload.keys import Keys
from tidegate.workload.parse import parse_profile

pytestmark = pytest.mark.spark

SMALL = {"vocabulary": "500"}


def test_the_counts_are_right(spark) -> None:
    settings = Settings(rate=parse_profile("constant:200"), seconds=2.0, cut=True, extra=SMALL)
    ran = run_application(spark, APPLICATION, settings, cores=(2, 4))
    assert ran.verdict is not None
    assert ran.verdict.correct, ran.verdict.said
    assert ran.verdict.figures["lines"] == ran.arrived == 400


def test_any_source_of_numbered_rows_can_drive_it(spark, tmp_path: Path) -> None:
    settings = Settings(rate=parse_profile("constant:1"), seconds=1.0, stretch=True, extra=SMALL)
    rows = full_source(spark, Keys(1), seed=1, batch_rows=50)
    made = flow(pipeline("wordcount", rows, arrival="timestamp"), settings, tmp_path / "collected")
    full = FullPipeline(
        spark, lambda: made.stream, str(tmp_path / "checkpoint"), operator=COUNT, tasks=2
    )
    try:
        full.await_batches(3)
    finally:
        full.stop()
    verdict = made.verify(full.checkpoint, 50 * len(full.results))
    assert verdict.correct, verdict.said
    assert verdict.figures["words"] == full.rows
