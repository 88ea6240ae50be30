"""Imbalance by chance, against rows that are drawn."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.microbatch.imbalance import chance_imbalance, routed_imbalance, steady_rows


@pytest.mark.parametrize(("rows", "tasks"), [(100, 4), (150, 16), (2000, 16), (60, 3)])
def test_rows_that_fall_by_chance_are_as_uneven_as_drawn(rows: int, tasks: int) -> None:
    drawn = np.random.default_rng(1).multinomial(rows, [1 / tasks] * tasks, size=4000)
    found = float(np.mean(drawn.max(axis=1))) * tasks / rows
    assert chance_imbalance(rows, tasks) == pytest.approx(found, rel=0.04)
    assert chance_imbalance(rows, 1) == 1.0


@pytest.mark.parametrize(("tasks", "rows"), [(2, 200), (6, 300), (12, 1000), (14, 4000)])
@pytest.mark.parametrize("evenness", [3.0, 1000.0])
def test_routed_imbalance_is_that_of_rows_drawn_by_the_shares(
    tasks: int, rows: int, evenness: float
) -> None:
    random = np.random.default_rng(tasks)
    shares = random.dirichlet(np.full(tasks, evenness))
    drawn = random.multinomial(rows, shares, 20_000).max(axis=1).mean() / (rows / tasks)
    assert routed_imbalance(shares, rows) == pytest.approx(drawn, rel=0.02)


def test_routed_imbalance_of_one_task_or_no_rows_is_none() -> None:
    assert routed_imbalance([1.0], 100.0) == 1.0
    assert routed_imbalance([0.9, 0.1], 0.0) == 1.0


@settings(max_examples=200, deadline=None)
@given(st.floats(0.0, 500.0), st.integers(1, 20), st.floats(1.0, 2.0), st.floats(0.0, 3.0))
def test_a_batch_of_the_steady_size_takes_as_long_as_its_rows_need_to_arrive(
    rate: float, tasks: int, lasting: float, chance: float
) -> None:
    cost = BatchCost(fixed_s=0.2, per_task_s=0.002, work_s=0.01)
    rows = steady_rows(cost, rate, tasks, lasting, chance)
    if rows is None:
        assert rate * cost.work_s * lasting >= tasks
        return
    fullest = lasting * rows + chance * math.sqrt(rows)
    duration_s = cost.overhead_s(tasks) + cost.work_s * fullest
    assert rows * tasks == pytest.approx(rate * duration_s, rel=1e-6, abs=1e-9)


def test_a_fixed_interval_gathers_its_rows() -> None:
    cost = BatchCost(fixed_s=0.2, work_s=0.001)
    assert steady_rows(cost, 100.0, 4, 1.0, 0.5, interval_s=2.0) == pytest.approx(50.0)
