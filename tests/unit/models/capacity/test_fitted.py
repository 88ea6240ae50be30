"""Capacity fitted to the samples of a calibration: predictions, their error, validation points."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.models.capacity.batch_overhead import fit_overhead
from tidegate.models.capacity.curves import FitRefused, fit
from tidegate.models.capacity.fitted import fit_capacity, validation_counts
from tidegate.models.capacity.shapes import MODEL_1, MODEL_2, Shape

COUNTS = (1, 2, 3, 4, 6)
MOST = 16


def saturating(m: int) -> float:
    return 1.0 / (0.0001 + 0.001 / m)


def sampled(
    curve, counts=COUNTS, noise: float = 0.0, repeats: int = 2, seed: int = 0
) -> list[tuple[int, float]]:
    rng = np.random.default_rng(seed)
    return [
        (m, curve(m) * (1.0 + noise * rng.standard_normal()))
        for _ in range(repeats)
        for m in counts
    ]


@settings(max_examples=60, deadline=None)
@given(
    level=st.floats(0.0, 500.0),
    rise=st.floats(100.0, 1e5),
    bend=st.floats(0.0, 1.0),
)
def test_an_exact_parabola_is_predicted_where_nothing_was_measured(
    level: float, rise: float, bend: float
) -> None:
    def parabola(m: int) -> float:
        return level + rise * m - bend * rise * m * m / (2 * MOST)

    found = fit_capacity(sampled(parabola), most=MOST)
    for one in found.predict([5, 8, MOST]):
        assert one.rows_per_s == pytest.approx(parabola(one.cores), rel=1e-3)
        assert one.low <= one.rows_per_s <= one.high


@settings(max_examples=60, deadline=None)
@given(serial=st.floats(1e-7, 1e-3), work=st.floats(1e-5, 1e-2))
def test_an_exact_ratio_is_predicted_where_nothing_was_measured(serial: float, work: float) -> None:
    found = fit_capacity(sampled(lambda m: 1.0 / (serial + work / m)), most=MOST)
    for one in found.predict([5, 8]):
        assert one.rows_per_s == pytest.approx(1.0 / (serial + work / one.cores), rel=0.03)


def test_intervals_cover_measurements_that_were_not_made() -> None:
    covered, widths = [], []
    for seed in range(120):
        found = fit_capacity(sampled(saturating, noise=0.02, repeats=3, seed=seed), most=MOST)
        rng = np.random.default_rng(1000 + seed)
        for one in found.predict([5, 8]):
            measured = saturating(one.cores) * (1.0 + 0.02 * rng.standard_normal())
            covered.append(one.low <= measured <= one.high)
            widths.append((one.high - one.low) / one.rows_per_s)
    assert np.mean(covered) >= 0.9
    assert np.median(widths) < 0.5


@pytest.mark.parametrize("shape", list(Shape))
def test_the_standard_error_is_that_of_many_repeated_calibrations(shape: Shape) -> None:
    """And it grows with the distance from the samples."""
    m = np.array([1, 3, 5, 8])
    weights = np.array([1e-4, 1e-3, 0.0, 0.0] if shape is MODEL_1 else [50.0, 900.0, 20.0])
    truth = shape.throughput(weights, np.array(COUNTS * 4, dtype=float))
    means, errors = [], []
    for seed in range(400):
        noise = 0.01 * truth * np.random.default_rng(seed).standard_normal(len(truth))
        pairs = [(c, float(t)) for c, t in zip(COUNTS * 4, truth + noise, strict=True)]
        try:
            curve = fit(pairs, shape, max_machines=8)
        except FitRefused:
            continue
        means.append(curve.mean(m))
        errors.append(curve.standard_error(m))
    assert len(means) > 100
    np.testing.assert_allclose(np.median(errors, axis=0), np.std(means, axis=0), rtol=0.3)
    assert np.median(errors, axis=0)[-1] > np.median(errors, axis=0)[1]


def test_a_curve_that_was_kept_from_falling_has_the_error_of_what_is_left_of_it() -> None:
    """Where more cores are slower only the level is left: the error of a mean, at any count."""
    falling = sampled(lambda m: 500.0 - 3.0 * m)
    flat = fit(falling, MODEL_2, 128, constrained=True)
    rates = np.array([rate for _, rate in falling])
    assert flat.weights == pytest.approx([rates.mean(), 0.0, 0.0])
    assert flat.freedom == len(rates) - 1
    expected = rates.std(ddof=1) / np.sqrt(len(rates))
    assert flat.standard_error(np.array([1, 128])) == pytest.approx([expected, expected])


def test_few_counts_are_the_bayesian_models_and_say_so() -> None:
    found = fit_capacity([(1, 100.0), (2, 195.0)], most=8)
    assert found.curve is None and "too few samples" in found.reason
    near, far = found.predict([2, 8])
    assert near.low < 195.0 < near.high
    assert far.high / far.low > near.high / near.low


def test_the_curve_that_was_chosen_before_is_kept() -> None:
    samples = sampled(lambda m: 100.0 * m, noise=0.01)
    for shape in Shape:
        assert fit_capacity(samples, most=6, curve=shape.value).curve == shape.value


def test_validation_points_are_neither_training_nor_checks() -> None:
    samples = sampled(saturating, noise=0.01)
    both = {
        "most": MOST,
        "count": 4,
        "threshold": 0.0,
    }
    every = validation_counts(samples, **both)  # type: ignore[arg-type]
    checked = validation_counts(samples, without=every[:1], **both)  # type: ignore[arg-type]
    assert not set(every) & set(COUNTS)
    assert not set(checked) & {*COUNTS, *every[:1]}
    assert validation_counts(samples, most=MOST, count=0, threshold=0.0) == []
    assert validation_counts(samples[:3], most=MOST, count=2, threshold=0.0) == []


def test_validation_decides() -> None:
    training = sampled(saturating, noise=0.01, seed=5)
    found = fit_capacity(training, [(12, saturating(12))], most=12)
    assert found.predict([12])[0].rows_per_s == pytest.approx(saturating(12), rel=0.1)
    assert "validation" in found.reason or "refused" in found.reason


@given(
    fixed_s=st.floats(0.0, 2.0),
    per_task_s=st.floats(0.0, 0.1),
    counts=st.lists(st.integers(1, 64), min_size=2, max_size=8, unique=True),
)
def test_overheads_on_a_line_are_that_line(
    fixed_s: float, per_task_s: float, counts: list[int]
) -> None:
    found = fit_overhead((k, fixed_s + per_task_s * k) for k in counts)
    assert found == pytest.approx((fixed_s, per_task_s), abs=1e-6)


def test_overheads_that_fall_are_no_negative_cost() -> None:
    fixed_s, per_task_s = fit_overhead([(1, 0.5), (2, 0.4), (4, 0.3)])
    assert per_task_s == 0.0 and fixed_s == pytest.approx(0.4)
