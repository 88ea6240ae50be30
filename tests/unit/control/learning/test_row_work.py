"""What a row costs in a query of others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.learning.row_work import RowWork, StageRun, rowless_s


def test_tasks_of_a_stage_with_few_rows_are_not_for_rows() -> None:
    reading = StageRun(4, busy_s=0.4, read_rows=10_000)
    shuffled = StageRun(200, busy_s=6.0, shuffled_rows=1000)
    assert rowless_s([reading, shuffled]) == pytest.approx(6.0 - 3 * 4e-5 * 1000)
    grouped = StageRun(4, busy_s=2.0, shuffled_rows=100_000)
    assert rowless_s([reading, grouped]) == pytest.approx(8 * 0.02), "as many rows explain it"
    assert rowless_s([StageRun(50, busy_s=1.0)]) == pytest.approx(0.5), "at most half is assumed"
    assert rowless_s([]) == 0.0


def test_nothing_is_known_before_the_first_batch() -> None:
    work = RowWork()
    assert (work.work_s, work.rowless_s) == (None, 0.0)
    work.observe(0, 1.0, 0.0)
    assert work.work_s is None


@given(
    row_s=st.floats(1e-6, 1e-3),
    rowless=st.floats(0.0, 10.0),
    sizes=st.lists(st.integers(1000, 100_000), min_size=4, max_size=24),
)
def test_what_stages_tell_exactly_is_found(row_s, rowless, sizes) -> None:
    work = RowWork()
    for rows in sizes:
        work.observe(rows, rowless + row_s * rows, rowless)
    found = work.work_s
    assert found is not None
    assert 0.5 * row_s <= found <= max(1.05 * row_s, 0.03 * (rowless / sizes[-1] + row_s))
    assert work.rowless_s >= 0.0
