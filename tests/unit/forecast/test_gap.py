import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.forecast.gap import GapDetector, Kind


def kinds(values):
    detector = GapDetector()
    return [detector.observe(float(v)) for v in values]


def steady(n, level=2700.0, seed=0):
    return level * (1 + 0.05 * np.random.default_rng(seed).standard_normal(n))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("edge_before", [[], [3.0], [900.0]])
@pytest.mark.parametrize("edge_after", [[], [800.0], [9000.0]])
def test_a_gap_with_partial_minutes_at_its_edges(scale, edge_before, edge_after):
    zeros = 28
    values = np.r_[steady(60), edge_before, np.zeros(zeros), edge_after, steady(30, seed=1)]
    seen = kinds(scale * values)
    first_zero = 60 + len(edge_before)
    assert all(kind is Kind.GAP for kind in seen[first_zero : first_zero + zeros])
    assert seen[first_zero + zeros] is Kind.EDGE
    assert all(kind is Kind.LOAD for kind in seen[:60])
    assert all(kind is Kind.LOAD for kind in seen[first_zero + zeros + 1 :])


def test_a_slow_decline_to_zero_is_a_lull():
    night = np.r_[steady(60), np.linspace(2700, 0, 90), np.zeros(120), np.linspace(0, 2700, 90)]
    assert set(kinds(night)) == {Kind.LOAD}


def test_a_quick_but_stepwise_decline_is_a_lull():
    down = 2700 * 0.6 ** np.arange(20)
    assert set(kinds(np.r_[steady(60), down, np.zeros(30)])) == {Kind.LOAD}


@settings(max_examples=15, deadline=None)
@given(rate=st.floats(0.1, 6.0), seed=st.integers(0, 1000))
def test_zeros_of_a_sparse_count_are_load(rate, seed):
    values = np.random.default_rng(seed).poisson(rate, size=300)
    assert np.mean([kind is not Kind.LOAD for kind in kinds(values)]) < 0.1


def test_bursts_are_load():
    values = np.r_[steady(60), steady(20) * 6, steady(60)]
    assert set(kinds(values)) == {Kind.LOAD}


def test_a_silence_that_lasts_is_believed():
    seen = kinds(np.r_[steady(60), np.zeros(400)])
    assert seen[60] is Kind.GAP
    assert seen[-1] is Kind.LOAD
