"""IncrementalLearning end to end: the models of a sequential run, in spite of the loop's delay."""

import pytest

from tidegate.apps.application import Settings
from tidegate.apps.learning.application import APPLICATION
from tidegate.apps.run_application import run_application
from tidegate.workload.parse import parse_profile

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("cut", [False, True], ids=["uncut", "cut"])
def test_the_models_are_right(spark, cut: bool) -> None:
    settings = Settings(
        rate=parse_profile("constant:500"),
        seconds=2.0,
        cut=cut,
        extra={"features": "8", "round": "128", "lag": "2"},
    )
    ran = run_application(spark, APPLICATION, settings, cores=(2, 4))
    assert ran.verdict is not None
    assert ran.verdict.correct, ran.verdict.said
    assert ran.arrived == 1000
    assert ran.verdict.figures["models"] == 7
