"""The quick sorts of the state give what the plain ones give, also where they cannot be used."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.spark.state.identity import by_slot
from tidegate.spark.state.lookup import newest_first

near = st.integers(0, 40)  # differ only in the bits that carry the place
far = st.integers(0, 2**64 - 1)


@settings(max_examples=100, deadline=None)
@given(st.lists(near | far, max_size=40))
def test_slots_are_ordered_as_a_stable_sort_orders_them(slots):
    array = np.array(slots, dtype=np.uint64)
    assert by_slot(array).tolist() == np.argsort(array, kind="stable").tolist()


@pytest.mark.parametrize("width", [1, 3, 2**62])
@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), max_size=40))
def test_of_rows_newest_first_the_first_of_each_pair_is_kept(width, rows):
    pairs = [(number, sub * width // 3) for number, sub in rows]
    number, sub = (np.array([p[i] for p in pairs], dtype=np.int64) for i in (0, 1))
    first = {pair: at for at, pair in reversed(list(enumerate(pairs)))}
    assert newest_first(number, sub).tolist() == [first[pair] for pair in sorted(first)]
