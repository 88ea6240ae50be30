"""Pairs by key and time equal those that two nested loops find."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.pipelines.functions.matching import numbers_after, pairs_within

far = st.sampled_from([0, 1, 5, 2**45, -(2**50)])
side = st.lists(st.tuples(st.integers(0, 3), st.builds(int.__add__, st.integers(0, 12), far)))


def columns(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.array([key for key, _ in rows], dtype=np.int64),
        np.array([time for _, time in rows], dtype=np.int64),
    )


@given(side, side, st.integers(0, 6), st.integers(0, 6), st.booleans())
def test_pairs_are_those_of_two_loops(lefts, rights, before_us, after_us, many_keys):
    factor = 2**40 if many_keys else 1  # then a key and a time do not fit into one number
    lefts = [(key * factor, time) for key, time in lefts]
    rights = [(key * factor, time) for key, time in rights]
    if many_keys:
        codes = sorted({key for key, _ in (*lefts, *rights)})
        lefts = [(codes.index(key), time) for key, time in lefts]
        rights = [(codes.index(key), time * 2**5) for key, time in rights]
    found = pairs_within(*columns(lefts), *columns(rights), before_us, after_us)
    expected = {
        (i, j)
        for i, (key, time) in enumerate(lefts)
        for j, (other, its) in enumerate(rights)
        if key == other and time - before_us <= its <= time + after_us
    }
    pairs = list(zip(*(numbers.tolist() for numbers in found), strict=True))
    assert len(pairs) == len(expected)
    assert set(pairs) == expected


def test_times_far_apart_are_ranked():
    key = np.arange(4)
    left, right = pairs_within(
        key, np.full(4, 2**61), key, np.array([2**61 + 3, 2**61 + 4, -(2**60), 2**61 - 1]), 1, 3
    )
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == [(0, 0), (3, 3)]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), unique=True),
    st.lists(st.integers(0, 3)),
)
def test_new_numbers_are_free(known, keys):
    found = numbers_after(*columns(known), np.array(keys, dtype=np.int64), 4)
    new = list(zip(keys, found.tolist(), strict=True))
    assert len(set(new)) == len(new)
    assert not set(new) & set(known)
    for key in set(keys):
        mine = [number for its, number in new if its == key]
        assert mine == sorted(mine), "in the order of the rows"
