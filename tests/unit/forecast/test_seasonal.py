import numpy as np
import pytest

from tidegate.errors import AskedWrongly
from tidegate.forecast.seasonal import SeasonalForecaster
from tidegate.forecast.simple import LastValue

STEP_S = 900.0
DAY = 96
MONDAY_S = 4 * 86_400.0  # the epoch began on a Thursday


def week_of_load(days, seed=0, weekend=0.5):
    """A daily cycle with a morning rise, halved at weekends, 3 % noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(days * DAY)
    hour = (t % DAY) / DAY * 24
    shape = (
        1
        + 0.8 * np.tanh((hour - 8) * 2) * (hour < 16)
        + 0.8 * np.tanh((20 - hour) * 2) * (hour >= 16)
    )
    day_of_week = (t // DAY) % 7
    return (
        1000
        * shape
        * np.where(day_of_week >= 5, weekend, 1.0)
        * np.exp(0.03 * rng.standard_normal(t.size))
    )


def shown(forecaster, values, start=0):
    for i, value in enumerate(values):
        forecaster.observe(float(value), MONDAY_S + STEP_S * (start + i))
    return forecaster


def test_knows_the_morning_once_it_has_seen_some():
    load = week_of_load(5)
    errors = {"seasonal": [], "last": []}
    seasonal, last = SeasonalForecaster(STEP_S), LastValue()
    for i in range(load.size - 4):
        for forecaster in (seasonal, last):
            forecaster.observe(load[i], MONDAY_S + STEP_S * i)
        in_rise = 7 * 4 <= i % DAY < 9 * 4
        if i >= 3 * DAY and in_rise:
            for name, forecaster in (("seasonal", seasonal), ("last", last)):
                said = forecaster.forecast(4).mean[-1]
                errors[name].append(abs(np.log(load[i + 4] / said)))
    assert seasonal.belief > 0.6
    assert np.mean(errors["seasonal"]) < 0.4 * np.mean(errors["last"])


def test_knows_the_day_of_the_week_after_some_weeks():
    """Saturday starts half as high: the step at midnight is foretold, and only at weekends."""
    load = week_of_load(20)
    into_saturday = shown(SeasonalForecaster(STEP_S), load[: 19 * DAY - 1])
    into_friday = shown(SeasonalForecaster(STEP_S), load[: 18 * DAY - 1])
    ahead = 4
    saturday = into_saturday.forecast(ahead).mean[-1] / load[19 * DAY - 2]
    friday = into_friday.forecast(ahead).mean[-1] / load[18 * DAY - 2]
    assert saturday < 0.8
    assert friday > 0.85


def test_says_how_sure_it_is():
    rng = np.random.default_rng(0)
    forecaster = SeasonalForecaster(STEP_S)
    inside, total = 0, 0
    load = 100 * np.exp(np.cumsum(0.02 * rng.standard_normal(900)))
    for i, value in enumerate(load[:-8]):
        forecaster.observe(value, MONDAY_S + STEP_S * i)
        if i > 300:
            said = forecaster.forecast(8)
            inside += abs(load[i + 8] - said.mean[-1]) < 1.645 * np.sqrt(said.variance[-1])
            total += 1
    assert 0.82 < inside / total < 0.97


def test_a_jump_lifts_the_level_at_once_and_the_doubt_with_it():
    forecaster = shown(SeasonalForecaster(STEP_S), week_of_load(3))
    calm = forecaster.forecast(6)
    shown(forecaster, week_of_load(1)[:6] * 5, start=3 * DAY)
    jumped = forecaster.forecast(6)
    assert jumped.mean[0] > 3.5 * calm.mean[0]
    relative = [np.sqrt(f.variance[0]) / f.mean[0] for f in (calm, jumped)]
    assert relative[1] > 1.5 * relative[0]


def test_does_not_depend_on_units():
    load = week_of_load(2)
    one = shown(SeasonalForecaster(STEP_S), load).forecast(20)
    other = shown(SeasonalForecaster(STEP_S), 1e-4 * load).forecast(20)
    np.testing.assert_allclose(other.mean, 1e-4 * one.mean, rtol=1e-9)
    np.testing.assert_allclose(other.variance, 1e-8 * one.variance, rtol=1e-9)


def test_skipped_steps_leave_no_trace():
    load = week_of_load(3)
    forecaster = SeasonalForecaster(STEP_S)
    shown(forecaster, load[: 2 * DAY])
    shown(forecaster, load[2 * DAY + 40 :], start=2 * DAY + 40)
    answer = forecaster.forecast(70)
    assert (
        np.isfinite(answer.mean).all()
        and (np.diff(answer.variance / answer.mean**2) >= -1e-12).all()
    )


def test_zeros_are_finite():
    answer = shown(SeasonalForecaster(STEP_S), [0.0, 0.0, 5.0, 0.0]).forecast(3)
    assert np.isfinite(answer.mean).all() and np.isfinite(answer.variance).all()


def test_bad_input_is_asked_wrongly():
    with pytest.raises(AskedWrongly):
        SeasonalForecaster(0.0)
    with pytest.raises(AskedWrongly):
        SeasonalForecaster().forecast(3)
