import pytest

from tidegate.errors import AskedWrongly
from tidegate.units import format_duration, parse_duration


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
    [(1.33966, "1.34 s", "1.34 s"), (0.0123412, "12.34 ms", "12.35 ms"), (5e-6, "5 us", "5 us")],
)
def test_durations_are_shown(seconds: float, shown: str, above: str) -> None:
    assert format_duration(seconds) == shown
    assert format_duration(seconds, round_up=True) == above
    assert parse_duration(above) >= seconds
