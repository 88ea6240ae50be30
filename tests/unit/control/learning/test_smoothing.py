"""Smoothing as DRS IV-A has it, and batches that are told apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.learning.outliers import Outliers
from tidegate.control.learning.smoothing import Alpha, Smoothing, Window
from tidegate.control.measurement import BatchMeasurement
from tidegate.errors import AskedWrongly

VALUES = st.lists(st.floats(0.0, 1e6), min_size=1, max_size=30)


@given(VALUES, st.floats(0.0, 0.99))
def test_alpha_is_the_papers_recurrence(values: list[float], alpha: float) -> None:
    smooth = Alpha(alpha)
    expected = values[0]
    assert smooth.update(values[0]) == values[0]
    for value in values[1:]:
        expected = alpha * expected + (1.0 - alpha) * value
        assert smooth.update(value) == expected


@given(VALUES, st.integers(1, 8))
def test_window_is_the_mean_of_the_last(values: list[float], size: int) -> None:
    smooth = Window(size)
    for end, value in enumerate(values, 1):
        assert smooth.update(value) == pytest.approx(np.mean(values[max(end - size, 0) : end]))


def test_quantities_do_not_mix() -> None:
    smoothing = Smoothing(lambda: Window(2))
    smoothing.update("a", 10.0)
    assert smoothing.update("b", 4.0) == 4.0
    assert smoothing.update("a", 20.0) == 15.0


def test_impossible_parameters_are_refused() -> None:
    with pytest.raises(AskedWrongly, match="below 1"):
        Alpha(1.0)
    with pytest.raises(AskedWrongly, match="1 or more"):
        Window(0)


def batch(number: int, duration_s: float, tasks: int = 4, outlier: str | None = None) -> object:
    return BatchMeasurement(
        batch_id=number,
        rows=1000,
        tasks=tasks,
        imbalance=1.0,
        duration_s=duration_s,
        ended_s=float(number),
        outlier=outlier,
    )


def test_first_batches_new_tasks_and_odd_ones_are_told_apart() -> None:
    outliers = Outliers()
    rng = np.random.default_rng(4)
    assert outliers.reason(batch(7, 3.0), 1.0) == "first"
    steady = [outliers.reason(batch(8 + n, rng.normal(1.0, 0.03)), 1.0) for n in range(20)]
    assert steady == [None] * 20
    assert outliers.reason(batch(30, 1.0, outlier="garbage collection"), 1.0) == (
        "garbage collection"
    )
    assert outliers.reason(batch(31, 2.0, tasks=6), 1.0) == "new tasks"
    assert outliers.reason(batch(32, 1.0, tasks=4), 1.0) is None
    odd = outliers.reason(batch(33, 3.0), 1.0)
    assert odd is not None and odd.startswith("3 times")
    assert outliers.reason(batch(34, 1.0), 1.0) is None


def test_a_lasting_change_is_no_outlier() -> None:
    outliers = Outliers()
    for number in range(12):
        outliers.reason(batch(number, 1.0), 1.0)
    reasons = [outliers.reason(batch(20 + n, 2.0), 1.0) for n in range(4)]
    assert reasons[0] is not None and reasons[1] is not None
    assert reasons[2] is None and reasons[3] is None


def test_a_large_batch_is_not_odd_when_it_was_expected_to_be_long() -> None:
    outliers = Outliers()
    for number in range(12):
        outliers.reason(batch(number, 1.0), 1.0)
    assert outliers.reason(batch(13, 9.0), 9.2) is None
