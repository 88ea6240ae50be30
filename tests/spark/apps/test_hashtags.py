"""Rolling Hashtag Count on Spark, cut and uncut: the counts of a plain loop over the texts."""

import pytest

from tidegate.apps.application import Settings
from tidegate.apps.hashtags.application import APPLICATION
from tidegate.apps.run_application import run_application
from tidegate.workload.parse import parse_profile

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("cut", [False, True], ids=["uncut", "cut"])
def test_the_counts_are_those_of_a_plain_loop(spark, cut: bool) -> None:
    settings = Settings(
        rate=parse_profile("constant:500"),
        seconds=4.0,
        cut=cut,
        extra={"window_s": "3", "every_s": "1", "hashtags": "300", "trend_s": "2"},
    )
    ran = run_application(spark, APPLICATION, settings, cores=(1, 2))
    assert ran.verdict is not None
    assert ran.verdict.correct, ran.verdict.said
    assert ran.verdict.figures["tweets"] == ran.arrived == 2000
    assert ran.verdict.figures["counts"] > 1000
