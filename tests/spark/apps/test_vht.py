"""The vertical Hoeffding tree on Spark, cut and uncut: the tree of a sequential learner."""

import pytest

pytest.importorskip("river")

from tidegate.apps.application import Settings
from tidegate.apps.run_application import run_application
from tidegate.apps.vht.application import APPLICATION
from tidegate.workload.parse import parse_profile

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("cut", [False, True], ids=["uncut", "cut"])
def test_the_tree_is_that_of_a_sequential_learner(spark, cut: bool) -> None:
    settings = Settings(
        rate=parse_profile("constant:1000"),
        seconds=3.0,
        seed=6,
        cut=cut,
        extra={"attributes": "4", "depth": "2", "grace": "200", "delay": "400"},
    )
    ran = run_application(spark, APPLICATION, settings, cores=(1, 2))
    assert ran.verdict is not None
    assert ran.verdict.correct, ran.verdict.said
    assert ran.verdict.figures["instances"] == ran.arrived == 3000
    assert ran.verdict.figures["nodes"] == 5
