"""Minutes are added up from ticks by their time stamps; what was not measured is missing."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.forecast.minute_rates import MinuteRates

EPOCH_S = 1_700_000_040.0
"""The start of a minute."""


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.5, 1.0, 2.0, 5.0, 10.0]), st.floats(0.0, 1e6)),
        min_size=30,
        max_size=200,
    )
)
def test_the_rows_of_the_minutes_are_those_of_the_ticks(ticks: list[tuple[float, float]]) -> None:
    """A tick belongs to the minute in which it ends. Nothing is lost, and nothing counts twice."""
    rates, at_s, over = MinuteRates(), EPOCH_S, []
    rates.observe(0.0, at_s)
    rows: dict[int, float] = {}
    covered_s: dict[int, float] = {}
    for long_s, rate in ticks:
        at_s += long_s
        number = math.ceil(at_s / 60.0) - 1
        rows[number] = rows.get(number, 0.0) + rate * long_s
        covered_s[number] = covered_s.get(number, 0.0) + long_s
        over += rates.observe(rate, at_s)
    done = [one for one in over if one.number in rows]
    assert [one.number for one in done] == sorted(rows)[:-1], "the last minute is not over"
    for one in done:
        long_s = covered_s[one.number]
        if long_s < 30.0:
            assert one.rate is None
        else:
            assert one.rate is not None
            assert one.rate * long_s == pytest.approx(rows[one.number], rel=1e-5, abs=1e-6)


def test_a_steady_load_has_steady_minutes_whatever_the_ticks() -> None:
    for tick_s in (0.5, 1.0, 7.0, 10.0):
        rates, over = MinuteRates(), []
        for tick in range(1, int(600 / tick_s) + 1):
            over += rates.observe(250.0, EPOCH_S + tick * tick_s)
        assert len(over) >= 9
        assert {one.rate for one in over} == {250.0}


def test_a_silence_is_a_gap_and_not_a_load_of_zero() -> None:
    rates, over = MinuteRates(), []
    for second in range(1, 181):
        over += rates.observe(100.0, EPOCH_S + second)
    for second in range(1, 121):
        over += rates.observe(100.0, EPOCH_S + 600.0 + second)
    assert [(one.rate, one.minutes) for one in over] == [(100.0, 1)] * 3 + [(None, 7), (100.0, 1)]
    known = rates.known
    assert [one.rate for one in known] == [100.0] * 3 + [None] * 7 + [100.0]
    first = int(EPOCH_S // 60)
    assert [one.number for one in known] == list(range(first, first + 11))


def test_a_silence_longer_than_memory_leaves_a_bounded_history() -> None:
    rates = MinuteRates(memory=50)
    rates.observe(5.0, EPOCH_S + 1.0)
    over = rates.observe(5.0, EPOCH_S + 3600.0 * 24 * 400)
    assert len(over) <= 51 and len(rates.known) == 50


def test_time_that_goes_back_is_left_out() -> None:
    rates = MinuteRates()
    rates.observe(5.0, EPOCH_S + 100.0)
    assert rates.observe(1e9, EPOCH_S + 50.0) == []
    over = []
    for second in range(101, 200):
        over += rates.observe(5.0, EPOCH_S + second)
    assert all(one.rate in (None, 5.0) for one in over)


def test_minutes_are_refilled() -> None:
    rates = MinuteRates()
    number = int(EPOCH_S // 60)
    rates.refill([(number - 3, 7.0), (number - 2, None)])
    over = rates.observe(9.0, EPOCH_S + 1.0)
    assert [(one.number, one.rate) for one in over] == [(number - 1, None)]
    assert [one.rate for one in rates.known] == [7.0, None, None]


def test_a_memory_of_nothing_is_refused() -> None:
    with pytest.raises(Exception, match="give 1 or more"):
        MinuteRates(memory=0)
