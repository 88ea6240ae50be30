"""Rates told tick by tick of rows that become known batch by batch: nothing lost or twice."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.learning.told_rate import ToldRate

LENGTHS_S = st.lists(st.floats(0.1, 4.0), min_size=3, max_size=25)
TICKS_S = st.lists(st.floats(0.05, 2.5), min_size=5, max_size=40)


@dataclass(frozen=True)
class Batch:
    since_s: float
    until_s: float
    ended_s: float
    rows: float


def batches(lengths_s: list[float], rows: list[float]) -> list[Batch]:
    """One batch after the other: each takes the rows that came since the one before it began."""
    found, since_s, until_s = [], 0.0, 1.0
    for length_s, count in zip(lengths_s, rows, strict=True):
        found.append(Batch(since_s, until_s, until_s + length_s, count))
        since_s, until_s = until_s, until_s + length_s
    return found


def told(ran: list[Batch], ticks_s: list[float], rest_s: float) -> tuple[ToldRate, list]:
    """(begin, end, rate) of each tick until `rest_s` after the last batch, ticks repeated."""
    rate, found, at_s, number = ToldRate(), [], 0.0, 0
    last_s, coming = ran[-1].ended_s, list(ran)
    while at_s < last_s + rest_s:
        interval_s = ticks_s[number % len(ticks_s)]
        number += 1
        at_s += interval_s
        while coming and coming[0].ended_s <= at_s:
            batch = coming.pop(0)
            rate.add(batch.rows, batch.since_s, batch.until_s)
        quiet = not coming
        if quiet:
            rate.nothing(at_s)
        found.append((at_s - interval_s, at_s, rate.tell(interval_s, quiet=quiet)))
    return rate, found


@given(
    st.data(),
    LENGTHS_S,
    TICKS_S,
    st.floats(0.0, 30.0),
)
def test_the_sum_over_time_is_the_rows_for_any_batches_ticks_and_stalls(
    data: st.DataObject, lengths_s: list[float], ticks_s: list[float], stall_s: float
) -> None:
    stalled = data.draw(st.integers(0, len(lengths_s) - 1))
    lengths_s = [each + (stall_s if n == stalled else 0.0) for n, each in enumerate(lengths_s)]
    rows = data.draw(
        st.lists(st.integers(0, 5000), min_size=len(lengths_s), max_size=len(lengths_s))
    )
    rate, ticks = told(batches(lengths_s, [float(count) for count in rows]), ticks_s, rest_s=30.0)
    summed = sum(each * (end_s - begin_s) for begin_s, end_s, each in ticks)
    assert all(each >= 0.0 for *_, each in ticks)
    assert summed + rate.untold == pytest.approx(sum(rows), abs=1e-6), "nothing lost or twice"
    assert rate.untold <= 0.0, "all is told"
    # What was told ahead is repaid from the rows that come next.
    end_s, more = ticks[-1][1], 1.0 - rate.untold
    rate.add(more, end_s, end_s + 1.0)
    while rate.untold > 0.0:
        summed += rate.tell(1.0, quiet=True)
    assert summed == pytest.approx(sum(rows) + more, abs=1e-6)


@given(LENGTHS_S, TICKS_S, st.floats(10.0, 2000.0), st.floats(0.0, 40.0))
def test_a_mean_over_ten_seconds_is_within_one_batch_of_the_truth(
    lengths_s: list[float], ticks_s: list[float], load: float, stall_s: float
) -> None:
    lengths_s[len(lengths_s) // 2] += stall_s
    spans_s = [1.0, *lengths_s[:-1]]
    ran = batches(lengths_s, [load * span_s for span_s in spans_s])
    _, ticks = told(ran, ticks_s, rest_s=0.0)
    since_s = ran[0].ended_s
    inside = [tick for tick in ticks if tick[0] >= since_s and tick[1] <= ran[-1].ended_s]
    one_batch = max(load * span_s for span_s in (1.0, *lengths_s))
    for first in range(len(inside)):
        summed = 0.0
        for begin_s, end_s, rate in inside[first:]:
            summed += rate * (end_s - begin_s)
            window_s = end_s - inside[first][0]
            if window_s >= 10.0:
                assert summed == pytest.approx(load * window_s, abs=one_batch + 1e-6)


@given(
    st.floats(0.3, 3.0),
    TICKS_S,
    st.floats(0.01, 20.0),
    st.floats(0.0, 20.0),
    st.integers(5, 15),
)
def test_a_load_that_changes_in_a_stall_is_told_as_it_is_afterwards(
    length_s: float, ticks_s: list[float], change: float, stall_s: float, stalled: int
) -> None:
    """The load is 1000 until a batch that stalls begins. Afterwards it is never told as zero."""
    lengths_s = [length_s] * (stalled + 40)
    lengths_s[stalled] += stall_s
    changed_s = 1.0 + stalled * length_s
    spans = [(b.since_s, b.until_s) for b in batches(lengths_s, [0.0] * len(lengths_s))]

    def came(since_s: float, until_s: float) -> float:
        before_s = max(min(until_s, changed_s) - since_s, 0.0)
        return 1000.0 * before_s + 1000.0 * change * (until_s - since_s - before_s)

    ran = batches(lengths_s, [came(*span) for span in spans])
    rate, ticks = told(ran, ticks_s, rest_s=0.0)
    summed = sum(each * (end_s - begin_s) for begin_s, end_s, each in ticks)
    known = sum(batch.rows for batch in ran if batch.ended_s <= ticks[-1][1])
    assert summed + rate.untold == pytest.approx(known, rel=1e-9)
    # Once only the new load is in the window of the rate, it is told, as far as credit allows.
    new_s = next(b.ended_s for b in ran if b.until_s > changed_s + length_s + stall_s + 1.0)
    for begin_s, end_s, each in ticks:
        if begin_s > new_s and end_s < ran[-1].ended_s:
            assert 0.49 * 1000.0 * change <= each <= 1.26 * 1000.0 * change


@pytest.mark.parametrize("length_s", [0.15, 0.7, 2.0, 3.3])
def test_a_steady_load_in_even_batches_is_told_as_it_is(length_s: float) -> None:
    count = round(30 / length_s)
    ran = batches([length_s] * count, [100.0, *[100.0 * length_s] * (count - 1)])
    _, ticks = told(ran, [1.0], rest_s=0.0)
    rates = [rate for begin_s, end_s, rate in ticks if begin_s > 6.0 and end_s < ran[-1].ended_s]
    assert rates and all(rate == pytest.approx(100.0, rel=0.26) for rate in rates)
    assert sum(rates) / len(rates) == pytest.approx(100.0, rel=0.05)


def test_a_doubled_load_shows_as_soon_as_its_batch_is_over_and_a_slow_batch_does_not_hide_it() -> (
    None
):
    rate = ToldRate()
    rate.add(100.0, 0.0, 1.0)
    assert rate.tell(1.0) == pytest.approx(100.0)
    rate.add(200.0, 1.0, 2.0)
    assert rate.tell(1.0) == pytest.approx(200.0)
    assert rate.tell(5.0) == pytest.approx(200.0), "the batch that runs is slow: held on credit"
    rate.tell(100.0)
    assert rate.untold == pytest.approx(-2000.0), "but not for ever"
    assert rate.tell(1.0) == 0.0


def test_rows_of_an_unknown_time_are_told_but_make_no_rate() -> None:
    rate = ToldRate()
    rate.add(1000.0, None, 5.0)
    assert rate.known == 0.0
    assert rate.tell(1.0) == 0.0, "there is no rate to tell yet"
    rate.add(10.0, 5.0, 6.0)
    assert rate.known == 10.0
    told_rows = sum(rate.tell(1.0, quiet=True) for _ in range(10))
    assert told_rows == pytest.approx(1010.0)


def test_a_pause_is_part_of_the_rate_and_a_clock_set_back_is_not() -> None:
    rate = ToldRate(window_s=10.0)
    rate.add(100.0, 0.0, 1.0)
    rate.nothing(9.0)
    rate.add(100.0, 0.0, 10.0)
    assert rate.known == pytest.approx(20.0)
    rate.forget_times()
    rate.add(1000.0, -3600.0, -3590.0)
    assert rate.known == pytest.approx(100.0)
