"""The size of batches, their samples and their overhead, on batches that are made up."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.apps.batch_size import batch_rows_of, set_batch_rows
from tidegate.apps.capacity import measure_cores
from tidegate.apps.capacity.batch_times import TimedBatch
from tidegate.apps.capacity.measure_cores import (
    LEAST_BATCH,
    MOST_STEP,
    BatchGuess,
    long_enough,
    overhead_of,
    resized,
)
from tidegate.models.capacity.calibration_plan import CalibrationPlan


class MadeUp:
    """Batches that take a + N c, the next of which is always planned before one is looked at."""

    def __init__(self, file: Path, seconds: Callable[[int, int], float]) -> None:
        self._file = file
        self._seconds = seconds
        self._planned = batch_rows_of(file)
        self.seen = 0

    def next(self) -> TimedBatch:
        rows, self._planned = self._planned, batch_rows_of(self._file)
        self.seen += 1
        return TimedBatch(rows, self._seconds(rows, self.seen))

    def next_of(self, rows: int) -> TimedBatch:
        while (batch := self.next()).rows != rows:
            assert self.seen < 500
        return batch


def sampled(
    tmp_path: Path,
    seconds: Callable[[int, int], float],
    guess: BatchGuess,
    plan: CalibrationPlan,
) -> list[TimedBatch]:
    file = tmp_path / "rows"
    set_batch_rows(file, guess.rows)
    told: list[tuple[float, ...]] = []
    found = measure_cores._sampled(
        MadeUp(file, seconds),  # type: ignore[arg-type]
        file,
        guess,
        plan,
        told.append,
    )
    assert told[-1] == tuple(one.rows_per_s for one in found)
    return found


@pytest.mark.parametrize("row_s", [1e-6, 1e-4, 0.01, 1.0])
@pytest.mark.parametrize("first", [1, 50, 100_000])
def test_batches_come_to_take_the_stated_time(tmp_path: Path, row_s: float, first: int) -> None:
    found = sampled(
        tmp_path, lambda rows, _: 0.3 + row_s * rows, BatchGuess(first, 0.3), CalibrationPlan()
    )
    assert len({one.rows for one in found}) == 1
    assert len(found) == 6
    assert found[-1].seconds == pytest.approx(2.0, rel=0.2) or found[-1].rows <= 2


def test_a_pipeline_that_gets_faster_is_sampled_anew(tmp_path: Path) -> None:
    """The first batches take four times as long, while it warms up."""

    def seconds(rows: int, seen: int) -> float:
        return (4.0 if seen <= 4 else 1.0) * (0.2 + 0.001 * rows)

    found = sampled(tmp_path, seconds, BatchGuess(500, 0.2), CalibrationPlan())
    assert found[-1].seconds == pytest.approx(2.0, rel=0.2)
    assert found[-1].rows_per_s == pytest.approx(1800 / 2.0, rel=0.05)


def test_a_throughput_that_never_settles_ends_after_the_most_samples(tmp_path: Path) -> None:
    plan = CalibrationPlan(most_samples=12)
    found = sampled(
        tmp_path, lambda rows, seen: 2.0 + 0.3 * (-1) ** seen, BatchGuess(1000, 0.2), plan
    )
    assert len(found) == 12
    assert not plan.rule.reached([one.rows_per_s for one in found])


@pytest.mark.parametrize("overhead_s", [1.3, 1.8, 4.0])
def test_batches_take_longer_where_more_cores_have_more_overhead_than_guessed(
    tmp_path: Path, overhead_s: float
) -> None:
    """As on twelve tasks of two real cores, after a measurement on eight."""
    plan = CalibrationPlan(batch_s=1.5)
    found = sampled(
        tmp_path, lambda rows, _: overhead_s + 1e-4 * rows, BatchGuess(12_000, 0.4), plan
    )
    assert found[-1].seconds >= 1.8 * overhead_s
    assert 1e-4 * found[-1].rows >= 0.8 * overhead_s


def test_batches_in_which_now_and_then_a_window_closes_are_sampled_in_the_end(
    tmp_path: Path,
) -> None:
    """A window closes every 5,000 rows, and takes as long as 100,000 of them."""
    passed = 0

    def seconds(rows: int, _: int) -> float:
        nonlocal passed
        closed, passed = (passed + rows) // 5000 - passed // 5000, passed + rows
        return 0.1 + 1e-4 * (rows + 100_000 * closed)

    found = sampled(tmp_path, seconds, BatchGuess(8_000, 0.1), CalibrationPlan(batch_s=1.0))
    assert len({one.rows for one in found}) == 1


@pytest.mark.parametrize("first", [100, 200_000])
def test_windows_of_the_batches_before_are_not_taken_for_overhead(
    tmp_path: Path, first: int
) -> None:
    """A watermark closes in each batch what the one before it filled, which is most of the work."""
    before = first

    def seconds(rows: int, _: int) -> float:
        nonlocal before
        took_s, before = 0.1 + 1e-4 * rows + 4e-4 * before, rows
        return took_s

    found = sampled(tmp_path, seconds, BatchGuess(first, 0.1), CalibrationPlan(batch_s=1.5))
    assert len({one.rows for one in found}) == 1
    assert found[-1].seconds == pytest.approx(1.5, rel=0.2)


@given(
    rows=st.integers(1, 10**6),
    seconds=st.floats(0.01, 100.0),
    overhead_s=st.floats(0.0, 10.0),
    batch_s=st.floats(0.1, 600.0),
)
def test_a_step_has_bounds_and_goes_the_right_way(
    rows: int, seconds: float, overhead_s: float, batch_s: float
) -> None:
    wanted = resized(TimedBatch(rows, seconds), overhead_s, batch_s)
    assert max(round(rows / MOST_STEP), 1) <= wanted <= round(rows * MOST_STEP)
    assert wanted >= rows if seconds <= batch_s else wanted <= rows


@given(
    overhead_s=st.floats(0.0, 5.0),
    row_s=st.floats(1e-6, 1.0),
    few=st.integers(1, 1000),
    more=st.integers(1, 100_000),
)
def test_the_overhead_is_what_a_batch_without_rows_would_take(
    overhead_s: float, row_s: float, few: int, more: int
) -> None:
    short_s, full_s = (overhead_s + row_s * rows for rows in (few, few + more))
    assert overhead_of(few, short_s, few + more, full_s) == pytest.approx(overhead_s, abs=1e-6)


def test_the_overhead_is_never_negative_and_batches_are_longer_than_it() -> None:
    assert overhead_of(10, 0.1, 80, 2.0) == 0.0
    assert overhead_of(10, 0.5, 80, 0.4) == 0.5
    assert long_enough(2.0, 0.3) == 2.0
    assert long_enough(0.5, 0.9) == LEAST_BATCH * 0.9
