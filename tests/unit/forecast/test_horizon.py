"""The candidate that needs the cheapest margin at a horizon is used there, and there alone."""

import json
import math

import numpy as np
import pytest

from tidegate.errors import AskedWrongly
from tidegate.forecast.horizon import HorizonSelection


def load(at_s: float) -> float:
    """A load that swings between 100 and 300 in twenty minutes."""
    return 200.0 + 100.0 * math.sin(2 * math.pi * at_s / 1200.0)


def highest(at_s: float, horizon_s: float) -> float:
    return max(load(at_s + second) for second in np.arange(1.0, horizon_s + 1.0))


def watched(horizon_s: float, seconds: int = 7200) -> tuple[HorizonSelection, list[bool]]:
    """A selection between the present value and one that knows the swing but is 30 % too low."""
    selection = HorizonSelection(0.9, "now")
    covered = []
    for second in range(seconds):
        at_s = float(second)
        selection.observe(load(at_s), at_s)
        points = {"now": load(at_s), "swing": 0.7 * highest(at_s, horizon_s)}
        _, point, margin = selection.choose(points, horizon_s, at_s)
        if second > seconds / 2:
            covered.append(highest(at_s, horizon_s) <= point * math.exp(margin) * (1 + 1e-9))
    return selection, covered


def test_what_is_off_by_a_constant_factor_is_corrected_and_used() -> None:
    selection, covered = watched(120.0)
    assert selection.selected(120.0) == "swing"
    losses = selection.losses(120.0)
    assert losses["swing"] < 0.5 * losses["now"]
    assert np.mean(covered) >= 0.9


def test_a_horizon_has_scores_of_its_own() -> None:
    selection, _ = watched(120.0)
    assert selection.selected(2.0) == "now"
    assert selection.losses(2.0) == {}


def test_a_silence_is_not_judged() -> None:
    selection = HorizonSelection(0.9, "now")
    for second in range(100):
        at_s = second * 3600.0
        selection.observe(100.0, at_s)
        selection.choose({"now": 1.0, "other": 100.0}, 60.0, at_s)
    assert selection.losses(60.0) == {}


def test_a_coverage_of_one_is_refused() -> None:
    with pytest.raises(AskedWrongly, match="between 0 and 1"):
        HorizonSelection(1.0, "now")


def test_what_was_good_long_ago_has_to_prove_itself_again() -> None:
    selection, _ = watched(120.0)
    kept = json.loads(json.dumps(selection.learned()))
    soon, late = HorizonSelection(0.9, "now"), HorizonSelection(0.9, "now")
    soon.recall(kept, 60.0)
    late.recall(kept, 120 * 86_400.0)
    assert soon.selected(120.0) == "swing" and late.selected(120.0) == "now"
    assert soon.losses(120.0) == pytest.approx(selection.losses(120.0))
    assert set(late.losses(120.0).values()) == {math.inf}


def test_a_selection_of_something_unknown_is_left_out() -> None:
    selection, _ = watched(120.0)
    kept = json.loads(json.dumps(selection.learned()))
    for one in kept["lengths"].values():
        one["selected"] = "gone"
    after = HorizonSelection(0.9, "now")
    after.recall(kept, 0.0)
    assert after.choose({"now": 1.0, "gone": 2.0}, 120.0, 8000.0)[0] == "now"
