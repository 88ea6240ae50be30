"""Stretched operators wait for what is left of the paper's time, and change no answer."""

import numpy as np
import pyarrow as pa
import pytest

from tidegate.apps import stretching
from tidegate.apps.stretching import Stretched, stretched_map, wait_until
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.functions import count
from tidegate.pipelines.keyed import KeyedBatch

ROWS = pa.table({"key": [1, 2, 1]})


class Clock:
    """A clock that goes on only when someone sleeps."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def perf_counter(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(stretching, "time", made)
    return made


def test_the_work_itself_counts(clock: Clock) -> None:
    def work(rows: pa.Table) -> pa.Table:
        clock.now_s += 0.5
        return rows

    assert stretched_map(work, 0.4)(ROWS) is ROWS
    assert clock.now_s == pytest.approx(101.2)


def test_no_wait_when_the_time_is_over(clock: Clock) -> None:
    wait_until(90.0, 5.0)
    assert clock.now_s == 100.0


def test_rows_may_weigh_differently(clock: Clock) -> None:
    heavy = stretched_map(lambda rows: rows, 1.0, lambda rows: np.array([0.5, 0.5, 4.0]))
    heavy(ROWS)
    assert clock.now_s == pytest.approx(105.0)


def test_without_a_time_the_function_is_itself() -> None:
    def work(rows: pa.Table) -> pa.Table:
        return rows

    assert stretched_map(work, None) is work


def test_a_stretched_keyed_function_gives_the_same_answers(clock: Clock) -> None:
    plain = count().bind(ROWS.schema, ("key",))
    slow = Stretched(count(), 2.0).bind(ROWS.schema, ("key",))
    batch = KeyedBatch(
        rows=ROWS,
        keys=pa.table({"key": [1, 2]}),
        row_key=np.array([0, 1, 0]),
        state=plain.state.empty_table(),
        state_key=np.array([], dtype=np.int64),
        at_us=0,
    )
    found, right = slow.update(batch), plain.update(batch)
    assert (found.output, found.upserts) == (right.output, right.upserts)
    assert found.output is not None
    assert clock.now_s == pytest.approx(106.0)
    assert slow.state == plain.state


def test_the_rows_that_are_made_may_count_instead(clock: Clock) -> None:
    def first(rows: pa.Table) -> pa.Table:
        return rows.slice(0, 1)

    assert stretched_map(first, 1.0, of_made=True)(ROWS).num_rows == 1
    assert clock.now_s == pytest.approx(101.0)
    derived = stretched_map(lambda rows: Derived(first(rows), np.array([0])), 1.0, of_made=True)
    derived(ROWS)
    assert clock.now_s == pytest.approx(102.0)
