"""Sojourn statistics from compact counts, against every row one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.learning.sojourn import (
    SLOT_US,
    BatchStamps,
    SojournWindow,
    Stamps,
    mean_sojourn_s,
    merged,
    sojourn,
)

NOW_US = 1_700_000_000_000_000

stamps = st.lists(st.integers(0, 8_000_000), max_size=60).map(
    lambda ages: NOW_US - np.array(ages, dtype=np.int64)
)


def nearest_rank(values: np.ndarray, percent: int) -> float:
    """The smallest value that at least this share of all values do not exceed, by counting."""
    for value in sorted(values.tolist()):
        if np.sum(values <= value) * 100 >= percent * len(values):
            return float(value)
    raise AssertionError


@given(st.lists(st.tuples(stamps, st.integers(0, 3_000_000)), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_against_brute_force(batches: list[tuple[np.ndarray, int]]) -> None:
    waits = np.concatenate([NOW_US + after - arrivals for arrivals, after in batches])
    latency = sojourn([BatchStamps(Stamps.of(rows), NOW_US + after) for rows, after in batches])
    if len(waits) == 0:
        assert latency is None
        return
    assert latency is not None
    assert latency.mean_s == pytest.approx(waits.mean() / 1e6, rel=1e-12)
    for percent, value_s in ((50, latency.p50_s), (95, latency.p95_s), (99, latency.p99_s)):
        true_us = nearest_rank(waits, percent)
        assert true_us <= round(value_s * 1e6) < true_us + SLOT_US


@given(stamps, st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_parts_add_up_to_the_whole(rows: np.ndarray, parts: int) -> None:
    whole = Stamps.of(rows)
    together = merged([Stamps.of(part) for part in np.array_split(rows, parts)])
    np.testing.assert_array_equal(together.slots, whole.slots)
    np.testing.assert_array_equal(together.counts, whole.counts)
    assert together.beyond_us == whole.beyond_us
    assert together.rows == len(rows)


def test_far_apart_stamps_take_little_room() -> None:
    rows = np.array([0, NOW_US, NOW_US + 1], dtype=np.int64)
    assert Stamps.of(rows).counts.tolist() == [1, 2]


def test_no_parts_are_no_rows() -> None:
    assert merged([]).rows == 0
    assert sojourn([]) is None


def test_a_window_forgets_what_ended_before_it() -> None:
    window = SojournWindow(10.0)
    for second, wait_s in ((0, 5), (8, 1), (12, 3)):
        end_us = NOW_US + second * 1_000_000
        window.add(BatchStamps(Stamps.of(np.array([end_us - wait_s * 1_000_000])), end_us))
    at_12 = window.latency(NOW_US + 12_000_000)
    assert at_12 is not None and at_12.mean_s == 2.0 and at_12.p99_s == 3.0
    at_19 = window.latency(NOW_US + 19_000_000)
    assert at_19 is not None and at_19.mean_s == 3.0
    assert window.latency(NOW_US + 30_000_000) is None


@given(stamps, st.integers(0, 3_000_000))
@settings(max_examples=60, deadline=None)
def test_the_mean_of_one_batch_is_that_of_its_rows(arrivals: np.ndarray, after: int) -> None:
    found = mean_sojourn_s(BatchStamps(Stamps.of(arrivals), NOW_US + after))
    if len(arrivals) == 0:
        assert found is None
    else:
        assert found == pytest.approx((NOW_US + after - arrivals).mean() / 1e6, abs=1e-9)


def test_rows_of_the_future_wait_for_nothing() -> None:
    stamps = Stamps.of(np.array([2_000_000, 86_400_000_500, 86_400_000_900]))
    batch = BatchStamps(stamps, 5_000_000)
    found = sojourn([batch])
    assert found is not None
    assert found.mean_s == pytest.approx(1.0, abs=1e-3) and found.p50_s == 0.0
    assert found.p99_s == 3.0
    assert mean_sojourn_s(BatchStamps(Stamps.of(np.array([9_000_900])), 5_000_000)) == 0.0
