"""Erlang's formulas against forty digits, up to a million cores."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.models.queueing.erlang import erlang_loss, gain_from_loss, mean_delay


def reference_loss(cores: int, load: float) -> mpmath.mpf:
    """B = P(N = k) / P(N <= k), N Poisson, in arbitrary precision."""
    with mpmath.workdps(60):
        a = mpmath.mpf(load)
        at_most = mpmath.gammainc(cores + 1, a, regularized=True)
        exactly = mpmath.exp(cores * mpmath.log(a) - a - mpmath.loggamma(cores + 1))
        return exactly / at_most


def reference_delay(cores: int, load: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        loss = reference_loss(cores, load)
        spare = cores - mpmath.mpf(load)
        return cores * loss / (spare * (spare + load * loss))


def error(found: float, expected: mpmath.mpf) -> float:
    return float(abs(mpmath.mpf(found) / expected - 1))


@pytest.mark.parametrize(
    "cores", [1, 2, 10, 63, 64, 65, 170, 171, 1000, 10_000, 100_000, 1_000_000]
)
@pytest.mark.parametrize("utilisation", [0.01, 0.3, 0.7, 0.81, 0.82, 0.9, 0.99, 0.999, 0.9999])
def test_delay_has_nine_digits(cores: int, utilisation: float) -> None:
    load = cores * utilisation
    found = float(mean_delay(cores, load))
    assert math.isfinite(found)
    if found > 1e-290:
        assert error(found, reference_delay(cores, load)) < 1e-9
    elif cores * (utilisation - 1 - math.log(utilisation)) < 600:
        pytest.fail("the wait is large enough for a double, yet was lost")


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 20_000), st.floats(0.01, 0.9999))
def test_delay_and_gain_have_nine_digits(cores: int, utilisation: float) -> None:
    load = cores * utilisation
    now = reference_delay(cores, load)
    if now < 1e-280:
        return
    assert error(float(mean_delay(cores, load)), now) < 1e-9
    with mpmath.workdps(60):
        expected = now - reference_delay(cores + 1, load)
    assert (
        error(gain_from_loss(float(cores), load, erlang_loss(float(cores), load)), expected) < 1e-9
    )


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-3, 1e5), st.integers(1, 1000))
def test_delay_falls_and_is_convex(load: float, further: int) -> None:
    first = math.floor(load) + further
    cores = np.arange(first, first + 3, dtype=float)
    gains = [gain_from_loss(k, load, erlang_loss(k, load)) for k in cores]
    delays = mean_delay(cores, load)
    if gains[1] > 0.0:
        assert gains[0] > gains[1] > gains[2]
    assert np.all(np.diff(delays) <= 0.0)


def test_delay_broadcasts_and_is_infinite_when_unstable() -> None:
    delays = mean_delay(np.array([[1], [2], [3]]), np.array([0.5, 2.0]))
    assert delays.shape == (3, 2)
    assert delays[0, 0] == pytest.approx(1.0)  # M/M/1 at one half: rho / (1 - rho)
    assert np.isinf(delays[:2, 1]).all()
    assert delays[2, 1] == pytest.approx(4.0 / 9.0)  # M/M/3 at load 2, by hand


def test_no_load_no_wait() -> None:
    assert float(mean_delay(3, 0.0)) == 0.0
