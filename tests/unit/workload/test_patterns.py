"""The six loads of the autoscalers' comparison: their shapes, and how they are scaled."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.workload.patterns import (
    MINUTES,
    PATTERNS,
    PERIOD,
    Q1,
    Q3,
    Q11,
    SPIKE_CHANCE,
    Magnitudes,
    cosine,
    pattern,
    spiking,
)

seeds = st.integers(0, 2**31)
names = st.sampled_from(sorted(PATTERNS))
queries = st.sampled_from([Q1, Q3, Q11])


def mean_of(name: str, of: Magnitudes) -> np.ndarray:
    """The rates of many seeds, averaged, in which noise is all but gone."""
    return np.mean([PATTERNS[name](of, MINUTES, seed) for seed in range(400)], axis=0)


@given(names, queries, st.integers(1, 300), seeds)
def test_rates_are_never_negative_and_follow_from_the_seed(name, of, minutes, seed) -> None:
    rates = PATTERNS[name](of, minutes, seed)
    assert rates.shape == (minutes,) and np.isfinite(rates).all() and (rates >= 0.0).all()
    np.testing.assert_array_equal(rates, PATTERNS[name](of, minutes, seed))


@given(names, queries, st.integers(8, MINUTES), st.floats(0.05, 60.0), seeds)
@settings(max_examples=40, deadline=None)
def test_the_highest_minute_is_the_peak_and_the_shape_stays(
    name, of, minutes, minute_s, seed
) -> None:
    rates = PATTERNS[name](of, minutes, seed)
    scaled = pattern(name, of, peak=900.0, minute_s=minute_s, minutes=minutes, seed=seed)
    assert scaled.rates.max() == pytest.approx(900.0)
    np.testing.assert_allclose(scaled.rates * rates.max(), rates * 900.0, atol=1e-6)
    assert scaled.starts_ms[-1] == pytest.approx((minutes - 1) * minute_s * 1000.0, abs=0.51)


@given(queries, seeds)
def test_the_cosine_is_within_its_noise(of, seed) -> None:
    turns = 2.0 * np.pi * np.arange(MINUTES) / PERIOD
    off = cosine(of, MINUTES, seed) - (of.mean + of.swing * np.cos(turns))
    assert np.abs(off).max() <= of.step
    assert np.abs(off).max() > 0.5 * of.step


@given(queries, seeds)
def test_the_random_walk_begins_at_the_mean_and_takes_bounded_steps(of, seed) -> None:
    rates = PATTERNS["random"](of, MINUTES, seed)
    assert rates[0] == of.mean
    assert np.abs(np.diff(rates)).max() <= of.step


def test_increasing_and_decreasing_lead_where_the_original_leads() -> None:
    up, down = mean_of("increasing", Q3), mean_of("decreasing", Q3)
    assert up[0] < 0.1 * Q3.climb
    # A walk cannot go below 0, which lifts the first minutes.
    assert up[-1] == pytest.approx(2_000.0 + MINUTES * Q3.climb * (1 / 22 - 1 / 30) / 2, rel=0.05)
    assert down[0] == pytest.approx(Q3.fall + 2_000.0, rel=0.02)
    assert down[-1] < 0.3 * down[0]
    assert np.corrcoef(up, np.arange(MINUTES))[0, 1] > 0.99
    assert np.corrcoef(down, np.arange(MINUTES))[0, 1] < -0.99


@given(queries, seeds)
def test_spikes_are_on_the_cosine_and_no_longer_than_three_minutes(of, seed) -> None:
    added = spiking(of, MINUTES, seed) - cosine(of, MINUTES, seed)
    spikes = added > 0.0
    assert added[spikes].min(initial=of.swing) >= 0.5 * of.swing
    assert added.max() <= of.swing
    lengths = np.diff(np.flatnonzero(np.diff(np.concatenate(([0], spikes, [0])))))[::2]
    assert lengths.max(initial=0) <= 3
    assert not spikes[0]


def test_spikes_come_as_often_as_their_chance_says() -> None:
    share = np.mean(
        [(spiking(Q3, 1000, seed) > cosine(Q3, 1000, seed)).mean() for seed in range(9)]
    )
    # After 1 / chance minutes on average, a spike lasts two.
    assert share == pytest.approx(2.0 / (1.0 / SPIKE_CHANCE + 2.0), abs=0.03)


@given(queries, seeds)
def test_converging_has_four_levels(of, seed) -> None:
    rates = PATTERNS["converging"](of, MINUTES, seed) / of.mean
    for begin, end, level in ((0, 20, 0.0), (20, 60, 1.0), (60, 100, 2.0), (100, 140, 1.0)):
        assert np.abs(rates[begin:end] - level).max() <= 0.1 + 1e-9


def test_what_is_no_load_is_refused() -> None:
    with pytest.raises(AskedWrongly, match="did you mean 'cosine'"):
        pattern("cosin", Q3, peak=1.0, minute_s=1.0)
    with pytest.raises(AskedWrongly, match="are no load"):
        pattern("cosine", Q3, peak=0.0, minute_s=1.0)
    with pytest.raises(AskedWrongly, match="are no load"):
        pattern("cosine", Q3, peak=1.0, minute_s=1.0, minutes=0)
