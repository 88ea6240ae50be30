import numpy as np
import pytest

from tidegate.errors import AskedWrongly
from tidegate.models.capacity.bayes import BayesianCapacity


def amdahl(m):
    return 40.0 / (1 + 20.0 / np.asarray(m, dtype=float))


CURVES = {
    "linear": lambda m: 2.0 * np.asarray(m, dtype=float),
    "saturating": amdahl,
    "flat": lambda m: np.full(np.shape(m), 49.0),
    "power": lambda m: 3.0 * np.asarray(m, dtype=float) ** 0.6,
}


@pytest.mark.parametrize("name", CURVES)
def test_intervals_cover_what_they_say(name):
    """90 % intervals, inside and beyond the samples, over many draws of few samples."""
    curve = CURVES[name]
    m = np.array([3, 5, 8, 16, 24, 48])
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        samples = [(k, float(curve(k)) * (1 + 0.04 * rng.standard_normal())) for k in (3, 6, 24)]
        model = BayesianCapacity(samples, max_machines=64)
        truth = curve(m) * (1 + 0.04 * rng.standard_normal(m.size))
        covered.append((truth >= model.quantile(m, 0.05)) & (truth <= model.quantile(m, 0.95)))
    assert np.mean(covered) >= 0.85


def test_few_samples_and_far_away_mean_wide_intervals():
    rng = np.random.default_rng(0)
    draws = [(m, float(amdahl(m)) * (1 + 0.03 * rng.standard_normal())) for m in [4, 8, 16] * 40]

    def width(model, m):
        return float(np.log(model.quantile(m, 0.95) / model.quantile(m, 0.05)))

    few, many = BayesianCapacity(draws[:2]), BayesianCapacity(draws)
    assert width(few, 8) > 1.5 * width(many, 8)
    assert width(many, 128) > 3 * width(many, 8)
    assert width(many, 8) == pytest.approx(2 * 1.645 * 0.03, rel=0.3)


def test_learns_the_truth_and_the_noise():
    rng = np.random.default_rng(1)
    model = BayesianCapacity(max_machines=64)
    for m in rng.integers(1, 65, size=800):
        model.observe(int(m), float(amdahl(m)) * (1 + 0.08 * rng.standard_normal()))
    m = np.arange(1, 65)
    np.testing.assert_allclose(model.mean(m), amdahl(m), rtol=0.06)
    np.testing.assert_allclose(np.sqrt(model.variance(m)) / model.mean(m), 0.08, rtol=0.25)


def test_does_not_depend_on_units():
    samples = [(m, float(amdahl(m))) for m in (2, 5, 11)]
    small = BayesianCapacity(samples)
    large = BayesianCapacity([(m, 1e6 * tau) for m, tau in samples])
    m = np.arange(1, 129)
    np.testing.assert_allclose(large.quantile(m, 0.1), 1e6 * small.quantile(m, 0.1), rtol=1e-9)


def test_forgetting_follows_machines_that_slow_down():
    old = [(8, 10.0)] * 200
    new = [(8, 5.0)] * 60
    assert BayesianCapacity(old + new).mean(8) > 7.0
    assert BayesianCapacity(old + new, forgetting=0.9).mean(8) == pytest.approx(5.0, rel=0.05)


def test_bad_input_is_asked_wrongly():
    with pytest.raises(AskedWrongly, match="no sample"):
        BayesianCapacity().mean(3)
    with pytest.raises(AskedWrongly, match="forgetting"):
        BayesianCapacity(forgetting=0.0)
    with pytest.raises(AskedWrongly, match="positive"):
        BayesianCapacity([(3, 0.0)])
    with pytest.raises(AskedWrongly, match="max_machines"):
        BayesianCapacity([(3, 1.0)], max_machines=8).mean(9)
