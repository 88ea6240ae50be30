"""Periods and floors: as people write them, in time zones, and past midnight."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.bounds import Bounds
from tidegate.control.floors import Floor, floors_of, raised
from tidegate.control.periods import DAYS, EVERY_DAY, Period
from tidegate.errors import AskedWrongly

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, zone: ZoneInfo | None = None) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone or UTC).timestamp()


def test_a_period_of_every_day_is_in_utc() -> None:
    night = Period.parse("22:30-06:00")
    assert night.holds(23 * 3600.0) and night.holds(3600.0) and not night.holds(12 * 3600.0)
    assert str(night) == "22:30-06:00 UTC"


@pytest.mark.parametrize("day", ["2026-01-12", "2026-07-13"])
def test_a_time_zone_is_that_of_its_clocks_in_winter_and_in_summer(day: str) -> None:
    period = Period.parse("mon-fri 08:30 - 10:00 Europe/Berlin")
    assert not period.holds(at(f"{day}T08:29:59", BERLIN))
    assert period.holds(at(f"{day}T08:30:00", BERLIN))
    assert period.holds(at(f"{day}T09:59:59", BERLIN))
    assert not period.holds(at(f"{day}T10:00:00", BERLIN))
    saturday = datetime.fromisoformat(f"{day}T09:00:00").replace(tzinfo=BERLIN) + timedelta(days=5)
    assert not period.holds(saturday.timestamp())


def test_past_midnight_it_belongs_to_the_day_on_which_it_begins() -> None:
    friday = Period.parse("fri 22:00-02:00")
    assert friday.holds(at("2026-11-20T23:00:00")), "Friday night"
    assert friday.holds(at("2026-11-21T01:00:00")), "still that night"
    assert not friday.holds(at("2026-11-20T01:00:00")), "the night of Thursday"


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("mon-fri", {0, 1, 2, 3, 4}),
        ("sat,sun", {5, 6}),
        ("fri-mon", {4, 5, 6, 0}),
        ("Wed", {2}),
        ("mon, wed-thu", {0, 2, 3}),
    ],
)
def test_days_as_people_write_them(text: str, days: set[int]) -> None:
    assert Period.parse(f"{text} 09:00-10:00").days == days


@given(
    st.integers(0, 1439),
    st.integers(0, 1439),
    st.sets(st.integers(0, 6), min_size=1),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]),
)
def test_what_is_written_is_read_again(begin: int, end: int, days: set[int], zone: str) -> None:
    if begin == end:
        return
    period = Period(60 * begin, 60 * end, frozenset(days), zone)
    assert Period.parse(str(period)) == period


@given(st.floats(0, 2e9), st.integers(0, 23))
def test_a_period_and_the_rest_of_the_day_make_a_day(at_s: float, hour: int) -> None:
    inside = Period(3600 * hour, 3600 * ((hour + 7) % 24))
    outside = Period(3600 * ((hour + 7) % 24), 3600 * hour)
    assert inside.holds(at_s) != outside.holds(at_s)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("9-10", "is not a period; write it like 09:00-10:00"),
        ("09:00-09:00", "let its end differ from its start"),
        ("25:00-26:00", "is not a period"),
        ("09:61-10:00", "is not a period"),
        ("moon 09:00-10:00", "'moon' is no day of the week; use mon, tue"),
        ("mon-foo 09:00-10:00", "'foo' is no day of the week"),
        ("09:00-10:00 Europe/Berln", "did you mean 'Europe/Berlin'"),
        ("mon tue 09:00-10:00", "is not a period"),
        ("", "is not a period"),
    ],
)
def test_what_is_no_period_is_refused(text: str, said: str) -> None:
    with pytest.raises(AskedWrongly, match=said):
        Period.parse(text)


def test_floors_hold_in_their_time_and_as_long_before_as_cores_take() -> None:
    floors = floors_of(["mon-fri 08:30-10:00 cores>=8", "00:00-24:00 cores>=2"])
    monday = at("2026-11-16T08:00:00")
    bounds = Bounds(1, 12)
    assert raised(bounds, floors, monday, 0.0) == Bounds(2, 12)
    assert raised(bounds, floors, monday, 1800.0) == Bounds(8, 12)
    assert raised(bounds, floors, monday + 3600.0, 0.0) == Bounds(8, 12)
    assert raised(Bounds(1, 4), floors, monday + 3600.0, 0.0) == Bounds(4, 4), "the maximum wins"
    assert raised(Bounds(9, 12), floors, monday + 3600.0, 0.0) == Bounds(9, 12)
    assert raised(bounds, (), monday, 0.0) == bounds


def test_floors_as_people_write_them() -> None:
    floor = Floor.parse("mon-fri 08:30-10:00 Europe/Berlin cores >= 8")
    assert floor.cores == 8 and floor.period.days == EVERY_DAY - {5, 6}
    assert Floor.parse(str(floor)) == floor
    for text in ("08:30-10:00", "cores>=8", "08:30-10:00 cores>=0", "08:30-10:00 cores<=8"):
        with pytest.raises(AskedWrongly, match="floor; write it like"):
            Floor.parse(text)
    assert len(DAYS) == 7
