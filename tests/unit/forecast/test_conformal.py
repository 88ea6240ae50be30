import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.forecast.conformal import AdaptiveConformal


def coverage(scores, rho, **options):
    margin = AdaptiveConformal(**options)
    hits, margins = [], []
    for score in scores:
        margins.append(margin.quantile(rho))
        hits.append(score <= margins[-1])
        margin.update(float(score))
    return np.mean(hits), np.array(margins)


def calm(rng, n):
    return 0.1 * rng.standard_normal(n)


def drifting(rng, n):
    return 0.1 * np.linspace(1, 8, n) * rng.standard_t(4, n) + np.linspace(0, 2, n)


def jumping(rng, n):
    return 0.1 * np.where(np.arange(n) % 700 < 350, 1, 6) * rng.standard_normal(n)


def shrinking(rng, n):
    return 0.5 * np.exp(-np.arange(n) / 300) * rng.standard_normal(n)


@pytest.mark.parametrize("rho", [0.9, 0.99])
@pytest.mark.parametrize("series", [calm, drifting, jumping, shrinking])
def test_the_coverage_asked_for_is_the_coverage_gotten(rho, series):
    scores = series(np.random.default_rng(0), 1200)
    covered, _ = coverage(scores, rho)
    assert covered == pytest.approx(rho, abs=0.012)


def test_the_margin_is_the_quantile_where_nothing_drifts():
    scores = calm(np.random.default_rng(1), 1500)
    _, margins = coverage(scores, 0.9)
    assert margins[-1000:].mean() == pytest.approx(0.1 * 1.2816, rel=0.15)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.floats(-3, 3), min_size=200, max_size=300),
    st.sampled_from([0.8, 0.9, 0.95]),
)
def test_no_sequence_of_bounded_scores_breaks_the_guarantee(scores, rho):
    covered, _ = coverage(scores, rho, gain=0.5)
    # |mean miss - (1 - rho)| <= (range of u) / (gain T), u within its bounds of 8 either way
    assert covered >= rho - 8.0 / (0.5 * len(scores)) - 1e-9


def test_shares_of_a_cycle_count_as_shares():
    """Half of each missed cycle is uncovered: cycles may be missed twice as often."""
    rng = np.random.default_rng(2)
    margin, missed_cycles, missed_minutes = AdaptiveConformal(), [], []
    for score in calm(rng, 1500):
        missed = score > margin.quantile(0.9)
        missed_cycles.append(missed)
        missed_minutes.append(0.5 * missed)
        margin.update(float(score), missed=0.5 * float(missed))
    assert np.mean(missed_minutes) == pytest.approx(0.1, abs=0.01)
    assert np.mean(missed_cycles) == pytest.approx(0.2, abs=0.02)


def test_targets_are_ordered():
    margin = AdaptiveConformal()
    for score in calm(np.random.default_rng(3), 300):
        margin.quantile(0.5)
        margin.quantile(0.99)
        margin.update(float(score))
    assert margin.quantile(0.99) > margin.quantile(0.5)


def test_a_margin_after_hopeless_misses_comes_back():
    margin = AdaptiveConformal()
    margin.quantile(0.9)
    for _ in range(500):
        margin.update(0.0, missed=1.0)
    high = margin.quantile(0.9)
    for score in calm(np.random.default_rng(4), 400):
        margin.update(float(score), missed=0.0)
    assert margin.quantile(0.9) < high


def test_bad_input_is_asked_wrongly():
    with pytest.raises(AskedWrongly):
        AdaptiveConformal().quantile(1.0)
    with pytest.raises(AskedWrongly):
        AdaptiveConformal().update(float("nan"))
    with pytest.raises(AskedWrongly):
        AdaptiveConformal(gain=0.0)


def test_scores_of_an_earlier_run_count_less_the_older_they_are():
    def after(age_s):
        old = AdaptiveConformal(memory=200, fading=0.985, gain=0.1)
        for _ in range(200):
            old.quantile(0.9)
            old.update(0.1)
        new = AdaptiveConformal(memory=200, fading=0.985, gain=0.1)
        new.recall(json.loads(json.dumps(old.learned())), age_s)
        begun = new.quantile(0.9)
        for _ in range(10):
            new.update(0.5)
        return old.quantile(0.9), begun, new.quantile(0.9), new

    old, begun, soon, _ = after(0.0)
    assert begun == old, "nothing is lost without a pause"
    _, aged, late, new = after(21 * 86_400.0)
    assert aged == pytest.approx(0.1, abs=0.1)
    assert late > soon + 0.05
    twice = AdaptiveConformal(memory=200, fading=0.985, gain=0.1)
    twice.recall(json.loads(json.dumps(new.learned())), 0.0)
    assert twice.quantile(0.9) == pytest.approx(new.quantile(0.9), rel=1e-4)
