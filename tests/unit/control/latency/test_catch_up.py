"""Cores and time to drain a backlog, with and without a read limit."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.latency.backlog_note import BacklogNote
from tidegate.control.latency.catch_up import cores_to_catch_up, time_to_catch_up_s
from tidegate.models.microbatch.batch_cost import BatchCost

COST = BatchCost(fixed_s=0.3, per_task_s=0.01, work_s=1e-3)


def drained_s(cores: int, rate: float, backlog: float, limit: float, steady_s: float) -> float:
    """The same, batch by batch."""
    at_s, waiting = 0.0, backlog
    for _ in range(100_000):
        rows = min(waiting, limit)
        lasts_s = COST.duration_s(rows, cores)
        waiting += rate * lasts_s - rows
        at_s += lasts_s
        if COST.duration_s(min(waiting, limit), cores) <= steady_s and waiting <= limit:
            return at_s
    return math.inf


@given(
    cores=st.integers(2, 16),
    rate=st.floats(10.0, 800.0),
    backlog=st.floats(10_000.0, 1e6),
    limit=st.floats(2000.0, 20_000.0),
)
def test_the_time_is_that_of_batch_after_batch(cores, rate, backlog, limit) -> None:
    steady_s = max(1.0, 1.2 * COST.overhead_s(cores) / (1.0 - rate * COST.row_s(cores)))
    found_s = time_to_catch_up_s(
        COST,
        cores,
        rate=rate,
        imbalance=1.0,
        backlog_rows=backlog,
        steady_s=steady_s,
        limit_rows=limit,
    )
    real_s = drained_s(cores, rate, backlog, limit, steady_s)
    batch_s = COST.duration_s(limit, cores)
    assert found_s == pytest.approx(real_s, rel=0.1, abs=3 * batch_s)


def test_a_limit_that_lets_in_less_than_arrives_is_never_drained() -> None:
    lasts_s = time_to_catch_up_s(
        COST, 4, rate=1000.0, imbalance=1.0, backlog_rows=1e5, steady_s=1.0, limit_rows=100.0
    )
    assert lasts_s == math.inf


def test_cores_that_do_not_help_behind_a_limit_are_not_taken() -> None:
    """100 rows are 0.1 s of work, so nearly all of a batch is its fixed cost."""
    asked = {
        "rate": 10.0,
        "imbalance": np.ones(32),
        "backlog_rows": 1e6,
        "steady_s": 1.0,
        "within_s": 5.0,
    }
    assert cores_to_catch_up(COST, **asked) == 32, "the whole backlog is the next batch"
    assert cores_to_catch_up(COST, **asked, limit_rows=100.0) <= 4
    assert cores_to_catch_up(COST, **asked, limit_rows=20_000.0) > 12


def test_a_backlog_is_announced_once() -> None:
    note = BacklogNote()
    assert note.note(1e6, 4.0, 8, within_s=5.0, at_s=0.0) is None
    said = note.note(1e6, 100.0, 8, within_s=5.0, at_s=1.0)
    assert said is not None and said.startswith("the backlog of 1,000,000 rows needs about 100 s")
    assert note.note(6e5, 60.0, 8, within_s=5.0, at_s=41.0) == said
    assert note.note(1e3, 1.0, 8, within_s=5.0, at_s=99.0) == said
    longer = note.note(9e5, 200.0, 8, within_s=5.0, at_s=50.0)
    assert longer != said and "about 3.33 min" in (longer or "")
    note.over()
    assert note.note(1e3, 1.0, 8, within_s=5.0, at_s=300.0) is None
    assert "grows even on all 8 cores" in (
        note.note(1e6, math.inf, 8, within_s=5.0, at_s=301.0) or ""
    )
