"""Moves of the paradigms, from the results of batches alone."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.apps.full_pipeline import move_in_checkpoint
from tidegate.apps.paradigms import OURS, STATIC, check_paradigm, control_of, route_anew
from tidegate.control.shards.balance import imbalance
from tidegate.errors import AskedWrongly
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan, Plans
from tidegate.spark.state.files import Durable


@given(st.lists(st.floats(0.0, 100.0), min_size=4, max_size=60), st.integers(1, 4))
def test_a_route_from_nothing_is_even(loads: list[float], tasks: int) -> None:
    route = route_anew(loads, tasks)
    assert len(route) == len(loads) and set(route) == set(range(tasks))
    mean = sum(loads) / tasks
    bound = (4 / 3) * max(1.0, max(loads) / mean) if mean > 0.0 else 1.0
    assert imbalance(loads, route, tasks) <= 2.0 * bound


def test_shards_without_load_are_spread() -> None:
    assert sorted(np.bincount(route_anew(np.zeros(9), 3))) == [3, 3, 3]


def test_only_ours_has_a_control_loop() -> None:
    assert control_of(STATIC, 8, 1.0) == {}
    assert control_of(OURS, 8, 1.0) == {"target": "500 ms", "cores": 8, "policy": "static"}


def test_an_unknown_paradigm_is_refused() -> None:
    with pytest.raises(AskedWrongly, match="ours"):
        check_paradigm("our")


def test_a_restart_begins_with_the_moves_that_it_was_stopped_for(tmp_path: Path) -> None:
    place = Durable(str(tmp_path / "plans"))
    place.make()
    plans = Plans(place, "e1")
    for batch in (3, 4):
        plans.write(BatchPlan(batch, 7, {"sums": OperatorPlan(2, (0, 0, 1, 1))}))
    move_in_checkpoint(place, {"sums": {1: 1}})
    newest = plans.newest()
    assert newest is not None and newest.batch_id == 4
    assert newest.operators["sums"] == OperatorPlan(2, (0, 1, 1, 1))
    before = plans.read(3)
    assert before is not None and before.operators["sums"].route == (0, 0, 1, 1)
    move_in_checkpoint(place, {})
    assert plans.newest() == newest
