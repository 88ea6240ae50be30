"""Beside river's Hoeffding tree on the same stream."""

import numpy as np
import pytest

from tests.unit.apps.vht.by_hand import ByHand
from tidegate.apps.vht.instances import Instances
from tidegate.apps.vht.options import VhtOptions
from tidegate.apps.vht.verdict import judged


def test_as_accurate_as_rivers_tree() -> None:
    pytest.importorskip("river")
    from tidegate.apps.vht.river_tree import river_predictions

    run = ByHand(Instances(VhtOptions(), seed=1))
    while run.first < 20_000:
        run.learn(2000)
        run.count()
    run.settle()
    peer = river_predictions(run.instances, np.arange(run.first))
    verdict = judged(run.learned(), run.instances, run.first, peer)
    assert verdict.correct, verdict.said
    assert verdict.figures["accuracy"] > verdict.figures["river_accuracy"] - 0.05
