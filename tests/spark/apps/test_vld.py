"""Video logo detection end to end, as one segment and cut into one per operator."""

import pytest

pytest.importorskip("cv2")

from tidegate.apps.application import Settings
from tidegate.apps.run_application import run_application
from tidegate.apps.vld.application import APPLICATION
from tidegate.workload.parse import parse_profile

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("cut", [False, True], ids=["one segment", "cut"])
def test_the_logos_are_those_of_a_sequential_run(spark, cut) -> None:
    settings = Settings(rate=parse_profile("constant:12"), seconds=3.0, cut=cut)
    ran = run_application(
        spark,
        APPLICATION,
        settings,
        cores=3,
        policy="static",
        split={"extract": 2, "match": 2, "aggregate": 1},
    )
    assert ran.verdict is not None
    assert ran.verdict.correct, ran.verdict.said
    assert ran.verdict.figures["frames"] == 36
