"""Sojourns of evenly spread arrivals, against rows that are followed one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.learning.uniform_sojourn import SpreadBatch, uniform_sojourn

POINTS = 4001
BATCHES = st.lists(
    st.builds(
        SpreadBatch,
        rows=st.integers(0, 50),
        span_s=st.one_of(st.just(0.0), st.floats(0.01, 20.0)),
        duration_s=st.floats(0.05, 20.0),
    ),
    max_size=6,
)


def followed(batches: list[SpreadBatch]) -> np.ndarray:
    """Sojourns of very many rows in place of each one, in the middle of equal slots of its span."""
    parts = [
        np.repeat(batch.duration_s + batch.span_s * (np.arange(POINTS) + 0.5) / POINTS, batch.rows)
        for batch in batches
    ]
    return np.sort(np.concatenate(parts)) if parts else np.empty(0)


@settings(max_examples=60, deadline=None)
@given(BATCHES)
def test_it_is_what_rows_that_are_followed_have(batches: list[SpreadBatch]) -> None:
    latency = uniform_sojourn(batches)
    rows = followed(batches)
    if len(rows) == 0:
        assert latency is None
        return
    assert latency is not None
    assert latency.mean_s == pytest.approx(rows.mean(), rel=1e-6)
    # A share of the rows is reached between the two rows around it; a step of a batch's slots and
    # a few ranks is all that following rows one by one may be off.
    step_s = max(batch.span_s for batch in batches) / POINTS
    for share, value in ((0.5, latency.p50_s), (0.95, latency.p95_s), (0.99, latency.p99_s)):
        rank = share * len(rows)
        around = 60.0
        low = rows[max(int(rank - around), 0)]
        high = rows[min(int(rank + around), len(rows) - 1)]
        assert low - step_s - 1e-9 <= value <= high + step_s + 1e-9


def test_the_steady_state_is_one_and_a_half_batches() -> None:
    latency = uniform_sojourn([SpreadBatch(rows=100, span_s=2.0, duration_s=2.0)] * 5)
    assert latency is not None
    assert latency.mean_s == pytest.approx(3.0)
    assert latency.p50_s == pytest.approx(3.0)
    assert latency.p95_s == pytest.approx(3.9)
    assert latency.p99_s == pytest.approx(3.98)


def test_a_percentile_in_a_gap_between_two_batches() -> None:
    short = SpreadBatch(rows=50, span_s=1.0, duration_s=1.0)
    long = SpreadBatch(rows=50, span_s=1.0, duration_s=8.0)
    latency = uniform_sojourn([short, long])
    assert latency is not None
    assert latency.p50_s == pytest.approx(2.0)
    assert latency.p95_s == pytest.approx(8.9)


def test_rows_that_came_all_at_once_have_one_sojourn() -> None:
    latency = uniform_sojourn([SpreadBatch(rows=3, span_s=0.0, duration_s=0.7)])
    assert latency is not None
    assert latency.mean_s == latency.p50_s == latency.p99_s == 0.7
