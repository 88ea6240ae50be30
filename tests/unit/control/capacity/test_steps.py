"""Ticks told as minutes: none left out, rows conserved, time and backlog in proportion."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.pipeline_worlds import measured
from tidegate.control.capacity.batch_samples import ShownCapacity
from tidegate.control.capacity.steps import StepFold
from tidegate.control.measurement import Measurement

START_S = 1_700_000_000.0


def tick(at_s: float, interval_s: float, rate: float, *, cores: int = 2) -> Measurement:
    return dataclasses.replace(
        measured(0, rate=rate, cores=cores), at_s=at_s, interval_s=interval_s, tick_s=1.0
    )


@given(
    gaps=st.lists(st.floats(0.2, 4.0), min_size=5, max_size=60),
    rates=st.lists(st.floats(0.0, 1e5), min_size=60, max_size=60),
    step_s=st.sampled_from([1.0, 2.0, 6.0]),
)
def test_steps_are_counted_one_by_one_and_hold_all_rows(
    gaps: list[float], rates: list[float], step_s: float
) -> None:
    fold = StepFold(step_s)
    at_s, rows, told_rows, numbers = START_S, 0.0, 0.0, list[float]()
    fold.add(tick(at_s, 1.0, 5e4), ())
    begun_s = at_s
    for gap_s, rate in zip(gaps, rates, strict=False):
        at_s += gap_s
        rows += gap_s * rate
        minutes = fold.add(tick(at_s, gap_s, rate), ())
        if minutes:
            # Steps that one tick ends share its rate, so each stands for its part of the time.
            told_rows += minutes[0].arrival_rate * (at_s - begun_s)
            assert len({one.arrival_rate for one in minutes}) == 1
            begun_s = at_s
            assert told_rows == pytest.approx(rows, rel=1e-5)
        numbers += [one.at_s / 60.0 for one in minutes]
    assert numbers == [numbers[0] + place for place in range(len(numbers))] if numbers else True
    if numbers:
        assert numbers[0] == round(START_S / step_s) + 1


def test_regular_ticks_make_regular_steps() -> None:
    fold = StepFold(3.0)
    ended = [
        len(fold.add(tick(START_S + second + 0.02 * (second % 2), 1.0, 100.0), ()))
        for second in range(31)
    ]
    assert sum(ended) == 10
    assert ended[3::3] == [1] * 10


def test_early_ticks_end_no_step() -> None:
    fold = StepFold(1.0)
    fold.add(tick(START_S, 1.0, 100.0), ())
    assert fold.add(tick(START_S + 0.3, 0.3, 100.0), ()) == ()
    assert len(fold.add(tick(START_S + 1.0, 0.7, 100.0), ())) == 1


def test_a_standstill_is_made_up_for_as_far_as_it_matters() -> None:
    fold = StepFold(1.0)
    fold.add(tick(START_S, 1.0, 100.0), ())
    made_up = fold.add(tick(START_S + 3600.0, 3600.0, 100.0), ())
    assert len(made_up) == 30
    assert made_up[-1].at_s == 60.0 * (START_S + 3600.0)


def test_a_backlog_counts_as_much_as_after_steps_of_a_minute() -> None:
    fold = StepFold(2.0)
    fold.add(tick(START_S, 1.0, 100.0), ())
    (minute,) = fold.add(
        dataclasses.replace(tick(START_S + 2.0, 2.0, 100.0), backlog_rows=50.0), ()
    )
    assert minute.backlog_rows == 50.0 * 30.0
    assert minute.interval_s == 60.0


@pytest.mark.parametrize(
    ("shown", "saturated", "processed", "busy"),
    [
        ((), False, 300.0, None),
        ((ShownCapacity(2, 600.0, False),), False, 300.0, 1.0),
        ((ShownCapacity(2, 250.0, False),), True, 250.0, 2.0),
        ((ShownCapacity(2, 600.0, True), ShownCapacity(2, 900.0, False)), True, 600.0, 1.0),
        ((ShownCapacity(3, 600.0, True),), False, 300.0, None),
    ],
)
def test_a_step_is_saturated_as_its_batches_show(
    shown: tuple[ShownCapacity, ...], saturated: bool, processed: float, busy: float | None
) -> None:
    """What batches on other cores have shown says nothing about these."""
    fold = StepFold(1.0)
    fold.add(tick(START_S, 1.0, 300.0), ())
    (minute,) = fold.add(tick(START_S + 1.0, 1.0, 300.0), shown)
    assert (minute.saturated, minute.processed_rate, minute.cores_busy) == (
        saturated,
        processed,
        busy,
    )


def test_a_step_in_which_no_batch_ended_says_nothing_of_capacity() -> None:
    """Or one saturated batch would be learned again with every step until the next one ends."""
    fold = StepFold(1.0)
    fold.add(tick(START_S, 1.0, 300.0), ())
    (own,) = fold.add(tick(START_S + 1.0, 1.0, 300.0), (ShownCapacity(2, 250.0, True),))
    assert (own.saturated, own.cores_busy) == (True, 2.0)
    (quiet,) = fold.add(tick(START_S + 2.0, 1.0, 300.0), ())
    assert (quiet.saturated, quiet.processed_rate, quiet.cores_busy) == (False, 300.0, None)
    late = fold.add(tick(START_S + 5.0, 3.0, 300.0), (ShownCapacity(2, 250.0, True),))
    assert [one.saturated for one in late] == [False, False, True]


@given(
    st.lists(
        st.builds(ShownCapacity, st.integers(1, 4), st.floats(1.0, 100.0), st.booleans()),
        max_size=12,
    )
)
def test_a_step_has_one_sample_for_each_number_of_cores(shown: list[ShownCapacity]) -> None:
    fold = StepFold(2.0)
    fold.add(tick(START_S, 1.0, 300.0), ())
    half = len(shown) // 2
    assert fold.add(tick(START_S + 1.0, 1.0, 300.0), shown[:half]) == ()
    fold.add(tick(START_S + 2.0, 1.0, 300.0), shown[half:])
    assert {one.cores for one in fold.samples} == {one.cores for one in shown}
    assert len({one.cores for one in fold.samples}) == len(fold.samples)
    if shown:
        assert fold.samples[-1].cores == shown[-1].cores
    for one in fold.samples:
        mine = [other for other in shown if other.cores == one.cores]
        counted = [other for other in mine if other.saturated] or mine
        rates = [other.rows_per_s for other in counted]
        assert one.saturated == any(other.saturated for other in mine)
        assert one.rows_per_s == pytest.approx(sum(rates) / len(rates))
    fold.add(tick(START_S + 4.0, 2.0, 300.0), ())
    assert fold.samples == ()
