"""Rolling Flight Distances on Spark, cut and uncut: the close pairs that brute force finds."""

import pytest

from tidegate.apps.application import Settings
from tidegate.apps.flights.application import APPLICATION
from tidegate.apps.run_application import run_application
from tidegate.workload.parse import parse_profile

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("cut", [False, True], ids=["uncut", "cut"])
def test_the_pairs_are_those_of_brute_force(spark, cut: bool) -> None:
    settings = Settings(
        rate=parse_profile("constant:300"),
        seconds=4.0,
        cut=cut,
        extra={"window_s": "3", "every_s": "1", "aircraft": "400", "near_km": "50"},
    )
    ran = run_application(spark, APPLICATION, settings, cores=(1, 2))
    assert ran.verdict is not None
    assert ran.verdict.correct, ran.verdict.said
    assert ran.verdict.figures["reports"] == ran.arrived == 1200
