"""The advertising pipeline end to end: every window of every campaign counted once."""

import pytest

from tidegate.apps.application import Settings
from tidegate.apps.campaigns.application import APPLICATION
from tidegate.apps.run_application import run_application
from tidegate.workload.parse import parse_profile

pytestmark = pytest.mark.spark


def test_the_views_are_right(spark) -> None:
    settings = Settings(
        rate=parse_profile("constant:400"),
        seconds=4.0,
        extra={"campaigns": "10", "window_s": "1"},
    )
    ran = run_application(spark, APPLICATION, settings, cores=(2, 4))
    assert ran.verdict is not None
    assert ran.verdict.correct, ran.verdict.said
    assert ran.verdict.figures["events"] == ran.arrived == 1600
    assert ran.verdict.figures["open_windows"] > 0
