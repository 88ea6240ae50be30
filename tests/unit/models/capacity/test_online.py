"""A capacity learned from nothing: an answer from the first sample on, the paper's curve later."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.models.capacity.bayes import BayesianCapacity
from tidegate.models.capacity.choice import choose
from tidegate.models.capacity.machines import machines_for
from tidegate.models.capacity.online import FEWEST_COUNTS, MEMORY, OnlineCapacity
from tidegate.models.capacity.shapes import Shape

COUNTS = np.arange(1, 33)


def linear(machines: list[int], noise: float = 0.0) -> list[tuple[int, float]]:
    rng = np.random.default_rng(3)
    return [(m, 100.0 * m * (1.0 + noise * rng.standard_normal())) for m in machines]


def test_few_samples_are_the_bayesian_models() -> None:
    samples = linear([2, 2, 3, 3])
    found = OnlineCapacity(samples, max_machines=32)
    bayes = BayesianCapacity(samples, max_machines=32)
    assert np.array_equal(found.variance(COUNTS[:3]), bayes.variance(COUNTS[:3]))
    assert np.array_equal(found.mean(COUNTS[:3]), bayes.mean(COUNTS[:3]))


def test_a_load_just_above_the_only_measured_count_does_not_get_all_machines() -> None:
    """Far from its samples the Bayesian model is unsure, whatever the number of machines."""
    found = OnlineCapacity([(6, 3300.0), (6, 3000.0), (6, 3600.0)] * 3, max_machines=200)
    assert machines_for(3000.0, 0.95, found, 200) <= 9


def test_enough_samples_are_the_papers_curve() -> None:
    samples = linear([1, 2, 4, 8, 16, 32], noise=0.02)
    found = OnlineCapacity(samples, max_machines=32)
    curve = choose(samples, max_machines=32).model
    assert np.array_equal(found.mean(COUNTS), curve.mean(COUNTS))
    assert np.array_equal(found.quantile(COUNTS, 0.1), curve.quantile(COUNTS, 0.1))


def test_the_curve_of_a_calibration_is_kept() -> None:
    samples = linear([1, 2, 4, 8, 16, 32], noise=0.02)
    for shape in Shape:
        found = OnlineCapacity(samples, max_machines=32, curve=shape.value)
        curve = choose(samples, max_machines=32, only=shape).model
        assert curve.shape is shape
        assert np.array_equal(found.mean(COUNTS), curve.mean(COUNTS))


@given(
    st.lists(
        st.tuples(st.integers(1, 24), st.floats(1.0, 1e5)),
        min_size=1,
        max_size=3 * FEWEST_COUNTS,
    )
)
def test_it_always_has_an_answer_and_never_grows_faster_than_its_cores(
    samples: list[tuple[int, float]],
) -> None:
    found = OnlineCapacity(samples, max_machines=32)
    mean, variance = found.mean(COUNTS), found.variance(COUNTS)
    assert np.isfinite(mean).all()
    assert (mean > 0.0).all()
    assert np.isfinite(variance).all()
    most = max(m for m, _ in samples)
    beyond = most < COUNTS
    allowed = found.mean([most])[0] * COUNTS[beyond] / most
    assert (mean[beyond] <= allowed * (1 + 1e-9)).all()


def test_estimates_stand_in_until_samples_are_enough() -> None:
    found = OnlineCapacity(max_machines=32)
    assert not found.known
    found.suggest(4, 800.0)
    assert found.known
    assert found.samples == ()
    assert found.mean([4])[0] > 700.0
    for m, throughput in linear([1, 2, 4, 8, 16]):
        found.observe(m, throughput)
    before = found.mean(COUNTS)
    found.suggest(4, 9000.0)
    assert np.array_equal(found.mean(COUNTS), before)
    assert np.allclose(before, 100.0 * COUNTS, rtol=1e-3)


def test_only_the_newest_samples_count() -> None:
    found = OnlineCapacity(linear([1, 2, 4, 8, 16]) * 3, max_machines=32)
    for m, throughput in linear([1, 2, 4, 8, 16]) * (MEMORY // 5):
        found.observe(m, 2.0 * throughput)
    assert len(found.samples) == MEMORY
    assert np.allclose(found.mean(COUNTS), 200.0 * COUNTS, rtol=1e-3)


def test_what_was_measured_before_counts_until_new_samples_take_its_place() -> None:
    measured = linear([1, 2, 4, 8, 16]) * 3
    found = OnlineCapacity(measured, max_machines=32)
    assert found.measured == tuple(measured)
    assert found.samples == ()
    for m, throughput in linear([1, 2, 4, 8, 16]) * 2:
        found.observe(m, 2.0 * throughput)
    between = found.mean(COUNTS)
    assert (between > 105.0 * COUNTS).all() and (between < 195.0 * COUNTS).all()
    assert len(found.samples) == 10


def test_a_long_measurement_loses_no_number_of_cores() -> None:
    many = linear(sorted([1, 2, 4, 8, 16, 32] * MEMORY))
    assert np.allclose(OnlineCapacity(many, max_machines=32).mean(COUNTS), 100.0 * COUNTS)
