"""TwitterSentiment end to end: moods as judged tweet by tweet."""

import pytest

pytest.importorskip("vaderSentiment")

from tidegate.apps.application import Settings
from tidegate.apps.run_application import run_application
from tidegate.apps.sentiment.application import APPLICATION
from tidegate.workload.parse import parse_profile

pytestmark = pytest.mark.spark


def test_the_moods_are_right(spark) -> None:
    settings = Settings(
        rate=parse_profile("constant:200"),
        seconds=2.0,
        cut=True,
        extra={"users": "40", "history": "4"},
    )
    ran = run_application(spark, APPLICATION, settings, cores=(2, 4))
    assert ran.verdict is not None
    assert ran.verdict.correct, ran.verdict.said
    assert ran.verdict.figures["tweets"] == ran.arrived == 400
    assert ran.verdict.figures["changes"] > 40
