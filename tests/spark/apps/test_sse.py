"""The stock exchange on Spark, cut and uncut: all answers are those of a sequential replay."""

import pytest

from tidegate.apps.application import Settings
from tidegate.apps.run_application import run_application
from tidegate.apps.sse.application import APPLICATION
from tidegate.workload.parse import parse_profile

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(("cut", "stretch"), [(False, True), (True, False)])
def test_the_answers_are_a_sequential_replay(spark, cut: bool, stretch: bool) -> None:
    settings = Settings(
        rate=parse_profile("constant:300"),
        seconds=3.0,
        stretch=stretch,
        cut=cut,
        extra={"stocks": "40"},
    )
    ran = run_application(spark, APPLICATION, settings, cores=(2, 2))
    assert ran.verdict is not None
    assert ran.verdict.correct, ran.verdict.said
    assert ran.arrived == ran.verdict.figures["orders"] == 900
    assert ran.verdict.figures["transactions"] > 200
