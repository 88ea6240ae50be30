import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.models.capacity.bayes import BayesianCapacity
from tidegate.models.capacity.curves import fit
from tidegate.models.capacity.machines import machines_for
from tidegate.models.capacity.shapes import MODEL_2


def linear(noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    samples = [(m, 2.0 * m * (1 + noise * rng.standard_normal())) for m in range(1, 31)]
    return fit(samples, MODEL_2, 40, constrained=True)


def test_half_is_equation_4():
    model = linear()
    assert machines_for(9.0, 0.5, model, 40) == 5
    assert machines_for(np.array([1.0, 9.0, 79.0]), 0.5, model, 40).tolist() == [1, 5, 40]


def test_too_much_load_asks_for_all_there_is():
    assert machines_for(1e9, 0.95, linear(), 40) == 40


@pytest.mark.parametrize("rho", [0.6, 0.9, 0.99])
@pytest.mark.parametrize("load_variance", [0.0, 9.0])
def test_is_the_first_count_that_reaches_rho(rho, load_variance):
    model = linear(noise=0.1)
    m = machines_for(20.0, rho, model, 40, load_variance=load_variance)
    means, variances = model.mean([m - 1, m]), model.variance([m - 1, m]) + load_variance
    reached = [
        1.0 - NormalDist(mean, math.sqrt(variance)).cdf(20.0)
        for mean, variance in zip(means, variances, strict=True)
    ]
    assert reached[0] < rho <= reached[1]


def test_without_model_variance_it_is_equation_18():
    model = linear(noise=0.3)
    only_load = machines_for(20.0, 0.95, model, 40, load_variance=4.0, model_variance=False)
    assert only_load < machines_for(20.0, 0.95, model, 40, load_variance=4.0)
    assert model.mean(only_load) - 20.0 >= NormalDist().inv_cdf(0.95) * 2.0


@settings(max_examples=40, deadline=None)
@given(
    loads=st.lists(st.floats(0.0, 100.0), min_size=2, max_size=6).map(sorted),
    rho=st.floats(0.5, 0.999),
    more=st.floats(0.0, 0.0009),
    variance=st.floats(0.0, 50.0),
)
def test_more_load_or_more_certainty_never_asks_for_fewer(loads, rho, more, variance):
    model = BayesianCapacity([(m, 2.0 * m) for m in (1, 2, 4, 8)], max_machines=64)
    asked = machines_for(np.array(loads), rho, model, 64, load_variance=variance)
    assert (np.diff(asked) >= 0).all()
    assert (asked >= 1).all() and (asked <= 64).all()
    surer = machines_for(np.array(loads), rho + more, model, 64, load_variance=variance)
    assert (surer >= asked).all()


@pytest.mark.parametrize("rho", [0.49, 1.0, -1.0, float("nan")])
def test_a_target_outside_the_range_is_asked_wrongly(rho):
    with pytest.raises(AskedWrongly, match="rho"):
        machines_for(1.0, rho, linear(), 40)
