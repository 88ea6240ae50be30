"""The capacity of links and tasks: the paper's figures, and no step below zero."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly
from tidegate.models.flow.regulation import (
    data_bandwidth,
    feedback_step,
    latency_capacity,
    link_capacity,
    regulated,
    task_capacity,
)


def test_the_papers_first_capacity() -> None:
    """A hundred-megabit network is 12.5 MB/s (eq. 9); four links share it (eq. 10)."""
    data = data_bandwidth(12.5e6, 0.3e6, 0.1e6, 2.0e6, 0.1e6)
    assert data == pytest.approx(10e6)
    assert link_capacity(data, row_bytes=100.0, links=4) == pytest.approx(25_000.0)
    assert data_bandwidth(1.0, 2.0) == 0.0
    assert task_capacity(900.0) == pytest.approx(900.0)
    assert task_capacity(1000.0, 1000.0) == pytest.approx(500.0), "first received, then worked on"
    assert task_capacity(1000.0, 0.0) == 0.0
    with pytest.raises(AskedWrongly, match="at least 1 link"):
        link_capacity(data, row_bytes=0.0)


def test_feedback_follows_the_latency() -> None:
    assert latency_capacity(0.004) == pytest.approx(250.0)
    assert feedback_step(0.004, 0.005) == pytest.approx(50.0)
    slow = regulated(1000.0, 900.0, latency_s=0.005, constraint_s=0.004)
    assert slow == pytest.approx(950.0)
    quick = regulated(1000.0, 990.0, latency_s=0.001, constraint_s=0.004)
    assert quick == pytest.approx(1750.0)
    assert regulated(1000.0, 100.0, latency_s=0.001, constraint_s=0.004) == 1000.0
    assert regulated(1000.0, 990.0, latency_s=0.003, constraint_s=0.004) == 1000.0
    with pytest.raises(AskedWrongly, match="above 0"):
        latency_capacity(0.0)


@given(st.floats(0.0, 1e6), st.floats(0.0, 1e6), st.floats(1e-4, 1e3), st.floats(1e-4, 1e3))
def test_no_step_of_the_feedback_leads_below_zero(
    capacity: float, flow: float, latency_s: float, constraint_s: float
) -> None:
    stepped = regulated(
        capacity, flow, latency_s=latency_s, constraint_s=constraint_s, at_once=flow * latency_s
    )
    assert stepped >= 0.0
