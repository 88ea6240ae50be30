"""The best split of an attribute: the columns agree with the plain loop, on any counts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tidegate.apps.vht.messages import GAIN_SCALE
from tidegate.apps.vht.packed import CLASSES, LEVELS
from tidegate.apps.vht.sequential import best_split
from tidegate.apps.vht.statistics import CELLS, best_splits

counts = arrays(np.int64, (3, CELLS), elements=st.integers(0, 1000)).filter(
    lambda table: (table.sum(axis=1) > 0).all()
)


@given(counts)
def test_as_by_a_plain_loop(table) -> None:
    cut, gain, low, high = best_splits(table)
    for row in range(len(table)):
        found = best_split(0, table[row].reshape(LEVELS, CLASSES).tolist())
        assert gain[row] == found.gain
        assert cut[row] == found.cut
        assert [low[row].tolist(), high[row].tolist()] == list(found.sides)


def test_a_perfect_split_gives_one_bit() -> None:
    table = np.zeros((1, LEVELS, CLASSES), dtype=np.int64)
    table[0, :6, 0] = 5
    table[0, 6:, 1] = 3
    cut, gain, low, high = best_splits(table.reshape(1, CELLS))
    assert cut.tolist() == [6]
    assert low.tolist() == [[30, 0]]
    assert high.tolist() == [[0, 30]]
    assert gain.tolist() == [GAIN_SCALE]
