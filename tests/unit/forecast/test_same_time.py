"""A rise that came at this time on another day is expected today, until it stays away."""

from collections.abc import Callable

from tidegate.forecast.minute_rates import MinuteRates
from tidegate.forecast.same_time import SameTime

DAY = 1440
FIRST = 28_333_440


def opening(minute: int) -> float:
    """100 by night, 300 from nine to six."""
    return 300.0 if 540 <= minute % DAY < 1080 else 100.0


def asked(days: int, rate: Callable[[int], float]) -> tuple[dict[int, float | None], SameTime]:
    """What is expected for the next three minutes, at every minute of so many days."""
    history, same = MinuteRates(), SameTime()
    found = {}
    for minute in range(days * DAY):
        history.refill([(FIRST + minute, rate(minute))])
        found[minute] = same.expected(3, history)
    return found, same


def test_the_opening_is_expected_from_the_second_day_on() -> None:
    found, same = asked(3, opening)
    assert all(found[minute] is None for minute in range(DAY))
    for day in (1, 2):
        assert found[day * DAY + 530] is None
        for minute in range(537, 540):
            assert found[day * DAY + minute] == 300.0
        assert found[day * DAY + 545] is None, "it has come"
    assert same.kept > 0.5


def test_what_does_not_come_again_is_soon_not_expected() -> None:
    """Each day has a rise of its own, at a time of its own."""

    def surprise(minute: int) -> float:
        day, since = divmod(minute, DAY)
        return 300.0 if any(0 <= since - 180 * n - 37 * day < 30 for n in range(8)) else 100.0

    found, same = asked(3, surprise)
    assert same.kept < 0.25
    assert not any(found[minute] for minute in range(3 * DAY - 300, 3 * DAY))


def test_a_rise_that_comes_early_is_not_taken_twice() -> None:
    """The load is up already when the other day's rise would be due: it is not expected to triple
    once more.
    """

    def earlier(minute: int) -> float:
        return opening(minute + 3) if minute >= DAY else opening(minute)

    found, _ = asked(2, earlier)
    assert max(value for value in found.values() if value is not None) <= 1.1 * 300.0 * 1.1
