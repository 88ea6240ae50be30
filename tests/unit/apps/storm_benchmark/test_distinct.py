"""The distinct values of groups, against Python's sets."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.apps.storm_benchmark.distinct import LISTS, BoundDistinct, Distinct
from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions.fold import Groups

BOUND = BoundDistinct("user", "visitors")
VALUES = st.integers(-(2**62), 2**62) | st.integers(0, 5)
ROWS = st.lists(st.tuples(st.integers(0, 3), VALUES), max_size=30)
STATES = st.lists(st.tuples(st.integers(0, 3), st.sets(VALUES, min_size=1, max_size=6)), max_size=5)


def groups(
    rows: list[tuple[int, int]], states: list[tuple[int, set[int]]], every: bool = False
) -> Groups:
    lists = pa.array([sorted(values) for _, values in states], LISTS)
    return Groups(
        rows=pa.table({"user": pa.array([value for _, value in rows], pa.int64())}),
        row_group=np.array([group for group, _ in rows], dtype=np.int64),
        state=pa.table({"visitors__values": lists}),
        state_group=np.array([group for group, _ in states], dtype=np.int64),
        count=4,
        every=every,
    )


@given(ROWS, STATES, st.booleans())
def test_a_group_has_all_values_of_its_rows_and_states(rows, states, every) -> None:
    folded = BOUND.fold(groups(rows, states, every))
    found = dict(
        zip(folded.groups.tolist(), folded.columns["visitors__values"].to_pylist(), strict=True)
    )
    of, (counts,) = BOUND.finish(folded.columns)
    assert of is None
    assert counts.to_pylist() == [len(values) for values in found.values()]
    for group in range(4):
        before = [values for of, values in states if of == group]
        after = set().union(*before, {value for of, value in rows if of == group})
        changed = every or len(before) > 1 or after != set().union(*before)
        assert found.get(group) == (sorted(after) if changed else None)


def test_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(AskedWrongly, match="did you mean 'user'"):
        Distinct("users", "visitors").over(pa.schema({"user": pa.int64()}), ("url",))
