import pytest

from tidegate.errors import AskedWrongly
from tidegate.units import counted, exact_duration, format_duration, format_share, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("2s", 2.0),
        ("2 seconds", 2.0),
        (" 1.5 min ", 90.0),
        ("250 us", 250e-6),
        (".5 S", 0.5),
        ("1e3ms", 1.0),
        ("1 hour", 3600.0),
    ],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds, rel=1e-15)


@pytest.mark.parametrize("text", ["", "500", "ms", "-2s", "0s", "2 2s", "1e999s", "two seconds"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(AskedWrongly, match="500ms"):
        parse_duration(text)


def test_an_unknown_unit_is_refused_with_the_nearest() -> None:
    with pytest.raises(AskedWrongly, match="unknown unit of time 'secnds'; did you mean 'seconds'"):
        parse_duration("2 secnds")


@pytest.mark.parametrize(
    ("seconds", "shown", "above"),
    [
        (6.66667, "6.67 s", "6.67 s"),
        (1.33966, "1.34 s", "1.34 s"),
        (0.0123412, "12.3 ms", "12.4 ms"),
        (5e-6, "5 us", "5 us"),
        (0.0, "0 s", "0 s"),
        (90.0, "90 s", "90 s"),
        (754.321, "12.6 min", "12.6 min"),
        (12_345.0, "3.43 h", "3.43 h"),
        (5_000_000.0, "1389 h", "1390 h"),
    ],
)
def test_durations_are_shown(seconds: float, shown: str, above: str) -> None:
    assert format_duration(seconds) == shown
    assert format_duration(seconds, round_up=True) == above
    assert not seconds or parse_duration(above) >= seconds


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (2.0, "2 s"),
        (1.2345, "1.2345 s"),
        (0.45, "450 ms"),
        (90.0, "90 s"),
        (300.0, "5 min"),
        (150.0, "2.5 min"),
        (1000.0, "1000 s"),
        (5400.0, "90 min"),
        (7200.0, "2 h"),
    ],
)
def test_what_was_set_is_shown_as_it_was_set(seconds: float, shown: str) -> None:
    assert exact_duration(seconds) == shown
    assert parse_duration(shown) == pytest.approx(seconds, rel=1e-11)


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0, "0 %"),
        (0.004, "0.4 %"),
        (0.89, "89 %"),
        (0.99, "99 %"),
        (0.996, "99.6 %"),
        (1.0, "100 %"),
        (1.2, "120 %"),
    ],
)
def test_shares_are_shown(share: float, shown: str) -> None:
    assert format_share(share) == shown


def test_what_is_counted_has_the_right_number() -> None:
    assert (counted(1, "core"), counted(2, "core")) == ("1 core", "2 cores")
