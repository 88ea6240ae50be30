"""Moves of the paradigms, from the results of batches alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.apps.paradigms import OURS, STATIC, check_paradigm, control_of, route_anew
from tidegate.control.shards.balance import imbalance
from tidegate.errors import AskedWrongly


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
