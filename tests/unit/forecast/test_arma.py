import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.forecast import arma, arma_likelihood
from tidegate.forecast.arma import Arma, ArmaFitter, ArmaForecaster


def simulated(phi, theta, n=100, seed=0):
    from scipy.signal import lfilter

    shocks = np.random.default_rng(seed).standard_normal(n + 200)
    return lfilter(np.r_[1, np.array(theta)], np.r_[1, -np.array(phi)], shocks)[200:]


def peer(x, phi, theta):
    """The same model in statsmodels, made exact: its filter would stop updating early."""
    # Imported where it is used: it takes seconds, and every test process reads every file.
    from statsmodels.tsa.statespace.sarimax import SARIMAX

    model = SARIMAX(x, order=(len(phi), 0, len(theta)))
    model.ssm.tolerance = 0
    return model


@pytest.mark.parametrize("p", range(4))
@pytest.mark.parametrize("q", range(4))
def test_log_likelihood_is_that_of_statsmodels(p, q):
    rng = np.random.default_rng(10 * p + q)
    x = simulated([0.8], [0.3], seed=p + q) * 3
    phi, theta = np.empty(p), np.empty(q)
    arma_likelihood.coefficients(0.6 * rng.standard_normal(p), phi)
    arma_likelihood.coefficients(0.6 * rng.standard_normal(q), theta)
    theta = -theta
    ours = arma.log_likelihood(x, phi, theta, mean=0.2, variance=1.7)
    theirs = peer(x - 0.2, phi, theta).loglike(np.r_[phi, theta, 1.7])
    assert ours == pytest.approx(theirs, abs=1e-8)


@pytest.mark.parametrize("order", [(1, 0), (0, 2), (1, 1)])
def test_the_maximum_is_at_least_that_of_statsmodels(order):
    from statsmodels.tsa.arima.model import ARIMA

    x = 50 + simulated([0.9], [0.4], seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = ARIMA(x, order=(order[0], 0, order[1]), trend="c").fit()
    ours = arma.fit(x, order)
    assert ours.log_likelihood >= theirs.llf - 1e-3
    assert ours.aic <= theirs.aic + 2e-3
    # Both climbed the same hill here, so they stand on the same spot.
    assert ours.log_likelihood == pytest.approx(theirs.llf, abs=1e-3)
    assert ours.mean == pytest.approx(theirs.params[0], abs=0.05)
    assert ours.variance == pytest.approx(theirs.params[-1], rel=0.01)


def test_the_reported_likelihood_is_the_likelihood_of_the_reported_parameters():
    x = 1e4 + 300 * simulated([1.2, -0.4], [0.5], seed=3)
    for model in ArmaFitter().fit_all(x):
        again = arma.log_likelihood(x, model.phi, model.theta, model.mean, model.variance)
        assert again == pytest.approx(model.log_likelihood, abs=1e-6)


def test_a_larger_order_is_never_less_likely():
    x = simulated([0.7, 0.2], [0.5, 0.2], seed=4)
    found = {m.order: m.log_likelihood for m in ArmaFitter().fit_all(x)}
    assert len(found) == 16
    for (p, q), value in found.items():
        if p:
            assert value >= found[p - 1, q] - 1e-9
        if q:
            assert value >= found[p, q - 1] - 1e-9


@pytest.mark.parametrize(
    ("phi", "theta"), [([0.7], []), ([], [0.6]), ([1.1, -0.3], [0.5]), ([0.5], [-0.4, 0.3])]
)
def test_true_parameters_are_recovered_from_much_data(phi, theta):
    model = arma.fit(7 + simulated(phi, theta, n=4000, seed=5), (len(phi), len(theta)))
    np.testing.assert_allclose(model.phi, phi, atol=0.12)
    np.testing.assert_allclose(model.theta, theta, atol=0.12)
    assert model.variance == pytest.approx(1.0, rel=0.08)


def test_aic_finds_an_autoregression():
    model = arma.fit_best(simulated([0.5, 0.4], [], n=1500, seed=6))
    assert model.order[0] >= 1
    assert model.aic == min(
        m.aic for m in ArmaFitter().fit_all(simulated([0.5, 0.4], [], n=1500, seed=6))
    )


@pytest.mark.parametrize(("phi", "theta"), [([0.8], [0.5]), ([0.5, 0.3], []), ([], [0.6, 0.2])])
def test_forecasts_are_those_of_statsmodels(phi, theta):
    x = simulated(phi, theta, seed=7)
    model = Arma(np.array(phi, float), np.array(theta, float), 0.0, 1.3, 0.0)
    ours = model.forecast(x, 12)
    theirs = peer(x, phi, theta).smooth(np.r_[phi, theta, 1.3]).get_forecast(12)
    np.testing.assert_allclose(ours.mean, theirs.predicted_mean, atol=1e-8)
    np.testing.assert_allclose(ours.variance, theirs.var_pred_mean, rtol=1e-6)


def test_forecast_variance_is_that_of_simulated_futures():
    """Guards the errata: sign of theta in psi, the sum to k - 1, the innovations' variance."""
    phi, theta = 0.7, 0.6
    model = Arma(np.array([phi]), np.array([theta]), 0.0, 4.0, 0.0)
    shocks = 2.0 * np.random.default_rng(8).standard_normal((20_000, 7))
    shocks[:, 0] = 0.0
    futures = np.zeros_like(shocks)
    for k in range(1, 7):
        futures[:, k] = phi * futures[:, k - 1] + shocks[:, k] + theta * shocks[:, k - 1]
    variance = model.forecast(np.zeros(60), 6).variance
    np.testing.assert_allclose(variance, futures[:, 1:].var(axis=0), rtol=0.05)
    assert variance[0] == pytest.approx(4.0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=4))
def test_every_search_point_is_stationary(z):
    point = np.array(z)
    phi = np.empty(point.size)
    arma_likelihood.coefficients(point, phi)
    assert (np.abs(np.roots(np.r_[1, -phi])) < 1 + 1e-6).all()


def test_the_window_slides_and_the_order_stays_when_asked_to():
    forecaster = ArmaForecaster(window=100, reselect_steps=0)
    x = 100 + 5 * simulated([0.9], [0.3], n=300, seed=9)
    for i, value in enumerate(x[:100]):
        forecaster.observe(value, 60.0 * i)
    forecaster.forecast(12)
    chosen = forecaster.model.order
    for i, value in enumerate(x[100:]):
        forecaster.observe(value, 60.0 * (100 + i))
    answer = forecaster.forecast(12)
    assert forecaster.model.order == chosen
    alone = arma.fit(x[-100:], chosen)
    assert forecaster.model.log_likelihood >= alone.log_likelihood - 0.01
    np.testing.assert_allclose(answer.mean, forecaster.model.forecast(x[-100:], 12).mean)


@pytest.mark.parametrize(
    "values", [[5.0], [5.0] * 200, [0.0] * 50, list(range(150)), [1.0, 1e6] * 60, [0, 0, 9] * 40]
)
def test_odd_series_still_get_a_finite_forecast(values):
    forecaster = ArmaForecaster()
    for i, value in enumerate(values):
        forecaster.observe(float(value), 60.0 * i)
    answer = forecaster.forecast(12)
    assert np.isfinite(answer.mean).all() and np.isfinite(answer.variance).all()
    assert (answer.variance >= 0).all()


@pytest.mark.parametrize("values", [[1.0] * 5, [1.0] * 50, [*([1.0, 2.0] * 30), np.nan]])
def test_a_fit_of_nothing_is_asked_wrongly(values):
    with pytest.raises(AskedWrongly):
        arma.fit(values, (1, 1))
