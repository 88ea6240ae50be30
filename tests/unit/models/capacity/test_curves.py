import numpy as np
import pytest

from tidegate.errors import AskedWrongly
from tidegate.models.capacity.choice import choose, disagreements
from tidegate.models.capacity.curves import FitRefused, fit
from tidegate.models.capacity.shapes import MODEL_1, MODEL_2, Shape

TRAINING = (3, 4, 6, 8, 24)


def saturating(m):
    return 1.0 / (0.02 + 0.9 / np.asarray(m, dtype=float) + 2e-5 * np.asarray(m, dtype=float))


def parabola(m):
    m = np.asarray(m, dtype=float)
    return 0.4 + 1.1 * m - 0.004 * m**2


def sampled(curve, counts, noise=0.0, repeats=1, seed=0):
    rng = np.random.default_rng(seed)
    return [
        (m, float(curve(m)) * (1 + noise * rng.standard_normal()))
        for m in counts
        for _ in range(repeats)
    ]


@pytest.mark.parametrize(("shape", "curve"), [(MODEL_1, saturating), (MODEL_2, parabola)])
def test_exact_samples_give_the_true_curve(shape, curve):
    model = fit(sampled(curve, TRAINING), shape, max_machines=100)
    m = np.arange(1, 101)
    np.testing.assert_allclose(model.mean(m), curve(m), rtol=1e-5)
    assert model.residual_variance < 1e-9


def test_model_1_minimises_squares_of_throughput_not_of_its_inverse():
    samples = sampled(saturating, (1, 2, 3, 5, 8, 12, 16, 20), noise=0.05, repeats=3)
    model = fit(samples, MODEL_1, max_machines=20)
    m = np.array([s[0] for s in samples])
    tau = np.array([s[1] for s in samples])

    def squares(weights):
        return ((MODEL_1.throughput(weights, m.astype(float)) - tau) ** 2).sum()

    least = squares(model.weights)
    rng = np.random.default_rng(1)
    for _ in range(200):
        assert squares(model.weights * (1 + 1e-3 * rng.standard_normal(4))) >= least


def test_residual_variance_is_equation_6():
    samples = sampled(parabola, range(1, 41), noise=0.03)
    model = fit(samples, MODEL_2, max_machines=60)
    m, tau = np.array([s[0] for s in samples]), np.array([s[1] for s in samples])
    assert model.residual_variance == pytest.approx(((tau - model.mean(m)) ** 2).sum() / (40 - 3))
    assert model.variance(m).shape == m.shape


def test_a_fit_that_bends_back_inside_the_range_is_refused():
    samples = sampled(parabola, TRAINING)
    fit(samples, MODEL_2, max_machines=130)
    with pytest.raises(FitRefused, match=r"bends back at 1[0-9]{2} machines"):
        fit(samples, MODEL_2, max_machines=200)


def test_a_fit_that_turns_negative_between_samples_is_refused():
    samples = [(1, 1.0), (2, 1.9), (4, 9.0), (16, 8.8), (24, 30.0)]
    with pytest.raises(FitRefused, match=r"turns negative|bends back"):
        fit(samples, MODEL_1, max_machines=24)


@pytest.mark.parametrize("shape", list(Shape))
@pytest.mark.parametrize("seed", range(5))
def test_the_constrained_fit_never_bends_or_turns(shape, seed):
    rng = np.random.default_rng(seed)
    samples = [(int(m), float(rng.uniform(0.5, 2) * m**0.5)) for m in (*TRAINING, 40)]
    model = fit(samples, shape, max_machines=128, constrained=True)
    tau = model.mean(np.arange(1, 129))
    assert (tau > 0).all()
    assert (np.diff(tau) >= -1e-9 * tau[1:]).all()


@pytest.mark.parametrize(("shape", "curve"), [(MODEL_1, saturating), (MODEL_2, parabola)])
def test_the_constraint_costs_nothing_where_the_truth_rises(shape, curve):
    model = fit(sampled(curve, TRAINING), shape, max_machines=100, constrained=True)
    m = np.arange(3, 25)
    np.testing.assert_allclose(model.mean(m), curve(m), rtol=1e-4)


def test_online_samples_move_the_curve_and_equal_a_fresh_fit():
    first = sampled(parabola, TRAINING, noise=0.02, repeats=2)
    later = sampled(lambda m: 0.8 * parabola(m), (10, 30, 50), noise=0.02, repeats=20, seed=1)
    online = fit(first, MODEL_2, max_machines=60, constrained=True)
    before = online.mean(50)
    for pair in later:
        online.observe(*pair)
    fresh = fit(first + later, MODEL_2, max_machines=60, constrained=True)
    np.testing.assert_allclose(online.weights, fresh.weights)
    assert online.residual_variance == pytest.approx(fresh.residual_variance)
    assert abs(online.mean(50) - 0.8 * parabola(50)) < abs(before - 0.8 * parabola(50))


def test_learning_never_refuses_once_it_runs():
    model = fit(sampled(parabola, TRAINING), MODEL_2, max_machines=120)
    for _ in range(50):
        model.observe(60, 20.0)
    tau = model.mean(np.arange(1, 121))
    assert (tau > 0).all() and (np.diff(tau) >= -0.02 * tau.max()).all()


@pytest.mark.parametrize(("curve", "name"), [(saturating, "model 1"), (parabola, "model 2")])
def test_validation_where_the_models_disagree_finds_the_true_one(curve, name):
    training = sampled(curve, TRAINING, noise=0.005, repeats=4)
    both = [fit(training, shape, 100, constrained=True) for shape in Shape]
    where = disagreements(*both, threshold=0.05)
    assert where and not set(where) & set(TRAINING)
    apart = np.abs(both[0].mean(where) - both[1].mean(where))
    assert apart[0] / both[0].mean(where[0]) > 0.05
    choice = choose(training, sampled(curve, where, noise=0.005, seed=3), max_machines=100)
    assert choice.reason.startswith(name)
    assert choice.model.samples == len(training) + len(where)


def test_models_that_agree_need_no_validation():
    training = sampled(lambda m: 2.0 * m, range(1, 13))
    both = [fit(training, shape, 12, constrained=True) for shape in Shape]
    assert disagreements(*both) == []


def test_choose_falls_back_when_both_fits_are_refused():
    samples = sampled(lambda m: 5.0, TRAINING, noise=0.05, repeats=2, seed=2)
    choice = choose(samples, max_machines=128)
    tau = choice.model.mean(np.arange(1, 129))
    assert (tau > 0).all()
    assert 3.0 < tau.mean() < 8.0


@pytest.mark.parametrize(
    "samples",
    [[(3, 1.0)] * 4, [(1, 1.0), (2, 2.0), (3, 3.0)], [(0, 1.0)], [(2, -1.0)], [(2, float("nan"))]],
)
def test_bad_samples_are_asked_wrongly(samples):
    with pytest.raises(AskedWrongly):
        fit(samples, MODEL_2)
