"""Frequent pattern detection end to end: a window that fills and slides, a loop that settles."""

import pytest

from tidegate.apps.application import Settings
from tidegate.apps.fpd.application import APPLICATION
from tidegate.apps.run_application import run_application
from tidegate.workload.parse import parse_profile

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("cut", [False, True], ids=["uncut", "cut"])
def test_the_patterns_are_those_of_the_last_window(spark, cut: bool) -> None:
    settings = Settings(
        rate=parse_profile("constant:300"),
        seconds=2.0,
        seed=5,
        cut=cut,
        extra={"window": "200", "threshold": "3"},
    )
    ran = run_application(spark, APPLICATION, settings, cores=(1, 2))
    assert ran.arrived == 600
    assert ran.verdict is not None
    assert ran.verdict.correct, ran.verdict.said
    assert ran.verdict.figures["patterns"] > 20
    assert ran.verdict.figures["reported"] > ran.verdict.figures["patterns"]
