"""The outlook from analogues: a distribution, across gaps, that learns when surges come."""

import numpy as np
import pytest

from tidegate.forecast.analogues import THRESHOLDS, Analogues


def watched(loads: np.ndarray, **options: int) -> Analogues:
    analogues = Analogues(**options)
    for minute, load in enumerate(loads.tolist(), start=1):
        analogues.observe(load, minute * 60.0)
        if minute < len(loads):
            analogues.outlook()
    return analogues


def noisy(minutes: int, level: float = 100.0, seed: int = 0) -> np.ndarray:
    return level * np.exp(0.05 * np.random.default_rng(seed).standard_normal(minutes))


def chance_above(analogues: Analogues, log_ratio: float) -> float:
    return float(np.interp(log_ratio, THRESHOLDS, analogues.outlook().minutes_above))


def test_the_curve_counts_the_window_and_falls() -> None:
    for length in (1, 10):
        outlook = watched(noisy(600), length=length).outlook()
        assert outlook.minutes_above[0] == pytest.approx(length, rel=0.02)
        assert (np.diff(outlook.minutes_above) <= 1e-9).all()
        assert outlook.median_load() == pytest.approx(100.0, rel=0.06)


def test_few_minutes_mean_a_wide_outlook() -> None:
    assert chance_above(watched(noisy(20)), 0.5) > 3 * chance_above(watched(noisy(900)), 0.5)


def test_twice_the_load_is_twice_the_outlook() -> None:
    loads = noisy(400)
    one, two = watched(loads).outlook(), watched(2 * loads).outlook()
    assert two.level == pytest.approx(2 * one.level)
    np.testing.assert_allclose(two.minutes_above, one.minutes_above, atol=1e-6)


def test_it_learns_when_surges_come() -> None:
    """A fourfold burst at every full hour: foreseen three minutes ahead, and only then."""
    loads = noisy(26 * 60, seed=1)
    minute = np.arange(len(loads))
    loads[(minute % 60 < 8) & (minute > 60)] *= 4.0
    before = watched(loads[: 25 * 60 - 2])  # the window is minute 0 of the hour
    between = watched(loads[: 25 * 60 + 30])
    assert chance_above(before, 1.0) > 0.5
    assert chance_above(between, 1.0) < 0.02


def test_a_gap_is_not_a_lull() -> None:
    loads = noisy(700, seed=2)
    loads[600:630] = 0.0
    inside = watched(loads[:615]).outlook()
    assert inside.gap
    assert inside.level == pytest.approx(100.0, rel=0.15)
    after = watched(loads).outlook()
    assert not after.gap
    assert after.median_load() == pytest.approx(100.0, rel=0.1)


def test_a_silence_that_lasts_is_believed() -> None:
    loads = np.concatenate([noisy(300), np.full(260, 0.0)])
    outlook = watched(loads).outlook()
    assert not outlook.gap
    assert outlook.level < 10.0


def test_memory_is_bounded_and_time_goes_on() -> None:
    analogues = watched(noisy(3000), memory=300)
    assert analogues.outlook().level == pytest.approx(100.0, rel=0.2)


@pytest.mark.parametrize(("before", "gap"), [(3, 1), (40, 3), (40, 500), (300, 4000), (0, 70)])
def test_a_gap_at_once_is_the_same_as_minute_by_minute(before: int, gap: int) -> None:
    rng = np.random.default_rng(before)
    one, other = (Analogues(lead=0, length=4, memory=1000) for _ in range(2))
    loads = np.exp(rng.normal(5.0, 0.4, before + 200))
    for number in range(before):
        for analogues in (one, other):
            analogues.observe(float(loads[number]), 60.0 * (number + 1))
            analogues.outlook()
    for number in range(gap):
        one.miss(60.0 * (before + number + 1))
    other.miss(60.0 * (before + gap), gap)
    for number in range(before, before + 200):
        for analogues in (one, other):
            analogues.observe(float(loads[number]), 60.0 * (gap + number + 1))
        first, second = one.outlook(), other.outlook()
        assert first.level == second.level
        np.testing.assert_array_equal(first.highest_above, second.highest_above)
    np.testing.assert_array_equal(one.belief, other.belief)
