"""When rows are combined before they are sent to their tasks, and what a record says of it."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.control.shards.test_balance import measured
from tidegate.control.shards.combine import FIXED_ROWS, CombineChoice, gain
from tidegate.control.shards.combine_notes import CombineNotes


def batch(keys: int, rows: int, tasks: int, hot: float = 0.0) -> tuple[list[int], list[int]]:
    """Rows per task, and combined rows, where each of `tasks` readers sees an even part."""
    of_key = np.full(keys, (1.0 - hot) * rows / keys)
    of_key[0] += hot * rows
    left = np.minimum(of_key, tasks)
    task = np.arange(keys) % tasks
    return (
        np.bincount(task, of_key, tasks).astype(int).tolist(),
        np.bincount(task, left, tasks).astype(int).tolist(),
    )


def test_it_pays_with_far_more_rows_than_keys():
    assert gain(*batch(10_000, 500_000, 2)) > 0.1
    assert gain(*batch(1_000_000, 500_000, 2)) < -0.1, "almost every row has a key of its own"


def test_it_pays_where_one_key_has_half_of_all_rows():
    """Even where the other keys are so many that nothing is saved on them."""
    even = batch(150_000, 400_000, 8)
    hot = batch(150_000, 400_000, 8, hot=0.5)
    assert gain(*even) < 0.1 < gain(*hot)


def test_small_batches_say_nothing():
    """Whether the stage pays for itself is not seen in them, and a load that falls rises again."""
    choice = CombineChoice(True)
    for _ in range(10):
        assert choice.observe([FIXED_ROWS // 4] * 2, [FIXED_ROWS // 4] * 2)
        assert not CombineChoice().observe([1000, 1000], [1, 1])
    assert gain([], []) == gain([0], [0]) == 0.0


def test_one_batch_alone_changes_nothing():
    few, many = batch(100, 500_000, 2), batch(2_000_000, 500_000, 2)
    choice = CombineChoice()
    assert [choice.observe(*one) for one in (few, many, few, few)] == [False, False, False, True]
    assert [choice.observe(*one) for one in (many, few, many, many)] == [True, True, True, False]


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1)), min_size=1, max_size=8))
def test_the_gain_is_never_more_than_all(tasks):
    rows = [count for count, _ in tasks]
    left = [int(count * share) for count, share in tasks]
    assert gain(rows, left) < 1.0
    assert gain(rows, rows) <= 0.5, "at best a stage with one full task is divided among all"


def test_a_record_says_when_it_begins_what_it_saves_and_when_it_ends():
    notes = CombineNotes()
    plain = measured([100, 100], (0, 1), 2, 1.0)
    (operator,) = plain.operators
    combined = replace(plain, operators=(replace(operator, rows=500_000, combined_rows=2_000),))
    idle = replace(plain, operators=(replace(operator, rows=0, combined_rows=None),))
    ended = replace(plain, operators=(replace(operator, rows=200, combined_rows=None),))
    name = operator.name
    assert notes.notes(plain) == ()
    assert notes.notes(combined) == (
        f"rows of '{name}' are now combined before they are sent to its tasks: of 500,000 rows "
        "2,000 are left",
    )
    assert notes.notes(combined) == notes.notes(idle) == ()
    assert notes.notes(ended) == (
        f"rows of '{name}' are no longer combined before they are sent to its tasks: too many were "
        "left",
    )
    assert notes.notes(ended) == ()
