"""Executors that outgrow their node are split, idle ones merged, and that seldom."""

import numpy as np
import pytest

from tidegate.control.placement.split_and_merge import EVERY_S, MERGED_LOAD, Regrouper, regroup
from tidegate.errors import AskedWrongly


def test_an_executor_larger_than_a_node_is_split_in_even_halves() -> None:
    loads = np.random.default_rng(3).exponential(0.1, 256)
    (split,) = regroup([12, 8], [loads, np.full(256, 0.02)], [0, 1], node_cores=8).splits
    assert split.executor == 0
    part = loads[list(split.shards)].sum() / loads.sum()
    assert 0.48 < part < 0.52


def test_idle_executors_of_a_node_become_one_that_leaves_room() -> None:
    loads = [[0.1], [0.2], [0.15], [0.24], [0.1], [3.0]]
    merges = regroup([1] * 6, loads, [0, 0, 0, 0, 1, 0], node_cores=8).merges
    assert merges == ((0, 1, 2),)
    assert sum(sum(loads[one]) for one in merges[0]) <= MERGED_LOAD


def test_what_has_no_halves_is_not_split() -> None:
    loads = [[3.0], [0.0, 0.0], [3.0, 0.0, 0.0]]
    assert regroup([12, 12, 12], loads, [0, 1, 2], node_cores=8).splits == ()


def test_it_waits_for_its_interval() -> None:
    often = Regrouper(node_cores=8)
    asked = ([1, 1], [[0.1], [0.1]], [0, 0])
    assert often.regroup(50.0, *asked).merges == ()
    assert often.regroup(50.0 + EVERY_S - 1.0, *asked).merges == ()
    assert often.regroup(50.0 + EVERY_S, *asked).merges == ((0, 1),)
    assert often.regroup(51.0 + EVERY_S, *asked).merges == ()


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(AskedWrongly, match="columns of equal length"):
        regroup([1], [[0.1], [0.2]], [0], 8)
