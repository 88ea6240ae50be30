"""The micro-benchmark on Spark, cut and uncut: its state equals the sequential reference."""

import pytest

from tidegate.apps.application import Settings
from tidegate.apps.micro.application import APPLICATION
from tidegate.apps.run_application import run_application
from tidegate.workload.parse import parse_profile

pytestmark = pytest.mark.spark


SMALL = {"keys": "300", "omega": "30", "state_kb": "4", "shards": "16"}


@pytest.mark.parametrize("cut", [False, True], ids=["uncut", "cut"])
def test_the_answers_are_right(spark, cut: bool) -> None:
    settings = Settings(
        rate=parse_profile("constant:300"), seconds=3.0, stretch=True, cut=cut, extra=SMALL
    )
    ran = run_application(spark, APPLICATION, settings, cores=(2, 4))
    assert ran.verdict is not None
    assert ran.verdict.correct, ran.verdict.said
    assert ran.verdict.figures["rows"] == ran.arrived == 900
    assert ran.verdict.figures["state_bytes"] == pytest.approx(
        ran.verdict.figures["keys"] / 300 * 4 * 1024 * 16, rel=0.05
    )
