import numpy as np
import pytest

from tidegate.errors import AskedWrongly
from tidegate.forecast import Forecast
from tidegate.forecast.arma import ArmaForecaster
from tidegate.forecast.seasonal import SeasonalForecaster
from tidegate.forecast.selection import SelectedForecaster
from tidegate.forecast.simple import LastValue, RecentMaximum
from tidegate.forecast.trend import DampedTrend


class Seer:
    """Knows a given series, times a factor that only a margin can take away."""

    def __init__(self, series, factor=1.0, noise=0.0):
        self._series, self._factor, self._noise = series, factor, noise
        self._rng = np.random.default_rng(0)
        self._at = 0

    def observe(self, value, at_s):
        self._at += 1

    def forecast(self, steps):
        ahead = self._series[self._at : self._at + steps] * self._factor
        ahead = ahead * np.exp(self._noise * self._rng.standard_normal())
        return Forecast(ahead, np.zeros(steps))


def series(n=900, seed=0):
    rng = np.random.default_rng(seed)
    return 100 * np.exp(np.cumsum(0.05 * rng.standard_normal(n)))


def run(selection, values):
    names = []
    for i, value in enumerate(values):
        selection.observe(float(value), 60.0 * i)
        names.append(selection.selected)
    return names


def test_the_one_that_knows_is_chosen():
    x = series()
    names = run(SelectedForecaster({"last": LastValue(), "seer": Seer(x)}), x[:-20])
    assert names[0] == "last"
    assert set(names[200:]) == {"seer"}


def test_a_constant_factor_costs_nothing_but_noise_does():
    x = series()
    selection = SelectedForecaster({"noisy": Seer(x, noise=0.2), "biased": Seer(x, factor=0.5)})
    assert run(selection, x[:-20])[-1] == "biased"


def test_follows_when_the_better_one_changes():
    x = series(1600)
    early = x.copy()
    early[800:] *= np.exp(np.random.default_rng(5).standard_normal(800))
    late = x.copy()
    late[:800] *= np.exp(np.random.default_rng(6).standard_normal(800))
    names = run(SelectedForecaster({"early": Seer(early), "late": Seer(late)}, fading=0.9), x[:-20])
    assert names[780] == "early"
    assert names[-1] == "late"


def test_what_it_says_is_what_the_selected_one_says():
    x = series(200)
    candidates = {"last": LastValue(), "maximum": RecentMaximum()}
    selection = SelectedForecaster(candidates)
    run(selection, x)
    np.testing.assert_array_equal(
        selection.forecast(5).mean, candidates[selection.selected].forecast(5).mean
    )
    assert set(selection.losses) == set(candidates)


def test_every_forecaster_gets_through_zeros_and_jumps():
    values = np.r_[series(130), np.zeros(30), 50 * series(60, seed=1)]
    selection = SelectedForecaster(
        {
            "recent maximum": RecentMaximum(),
            "last value": LastValue(),
            "trend": DampedTrend(),
            "arma": ArmaForecaster(),
            "seasonal": SeasonalForecaster(60.0),
        }
    )
    run(selection, values)
    answer = selection.forecast(12)
    assert np.isfinite(answer.mean).all() and (answer.variance >= 0).all()
    assert all(np.isfinite(loss) for loss in selection.losses.values())


def test_nobody_to_choose_from_is_asked_wrongly():
    with pytest.raises(AskedWrongly):
        SelectedForecaster({})
