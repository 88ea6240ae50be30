"""The forecasters of minutes learn what follows the clock, and never all in one tick."""

import pytest

from tidegate.forecast.by_minute import MinuteForecasts
from tidegate.forecast.minute_rates import MinuteRate, MinuteRates

DAY = 1440
FIRST = 28_333_440
"""A minute at midnight."""


def rate(minute: int) -> float:
    """100 by night, 400 from nine on; the rise takes five minutes."""
    since = minute % DAY - 540
    return 100.0 + 300.0 * min(max(since / 5.0, 0.0), 1.0) * (minute % DAY < 1080)


def taught(minutes: range, horizon_s: float = 150.0) -> tuple[MinuteForecasts, MinuteRates]:
    forecasts, history = MinuteForecasts(), MinuteRates()
    forecasts.points(horizon_s, 0.0, history)
    for minute in minutes:
        one = MinuteRate(FIRST + minute, rate(minute))
        history.refill([(one.number, one.rate)])
        forecasts.observe([one])
        forecasts.finish()
        forecasts.points(horizon_s, one.ended_s, history)
    return forecasts, history


def test_a_rise_at_the_same_time_every_day_is_seen_before_it_comes() -> None:
    last = 3 * DAY + 538  # the minute before it ends two minutes before nine
    forecasts, history = taught(range(DAY - 200, last))
    points = forecasts.points(150.0, 60.0 * (FIRST + last), history)
    assert set(points) == set(forecasts.names)
    assert points["highest minute"] < 130.0, "the last minutes do not tell"
    assert points["season"] > points["highest minute"]


def test_the_work_of_a_minute_is_spread_over_ticks() -> None:
    forecasts, _ = taught(range(30))
    done: list[list[str]] = []
    run = forecasts._run

    def counted(name: str, minute: MinuteRate) -> None:
        done[-1].append(name)
        run(name, minute)

    forecasts._run = counted  # type: ignore[method-assign]
    forecasts.observe([MinuteRate(FIRST + 30, 100.0)])
    for _ in range(30):
        done.append([])
        forecasts.work(1.0)
    assert max(map(len, done)) == 1
    assert sorted(name for names in done for name in names) == sorted(forecasts.names)


def test_a_gap_is_passed_over() -> None:
    forecasts, history = taught(range(600, 720))
    gap = [MinuteRate(FIRST + 720 + n, None) for n in range(60)]
    forecasts.observe(gap)
    forecasts.finish()
    after = [MinuteRate(FIRST + 780 + n, 400.0) for n in range(3)]
    forecasts.observe(after)
    forecasts.finish()
    points = forecasts.points(90.0, after[-1].ended_s, history)
    assert points and min(points.values()) == pytest.approx(400.0, rel=0.25), points


def test_a_longer_horizon_gets_its_analogues_from_the_history() -> None:
    forecasts, history = taught(range(600, 900), horizon_s=5.0)
    at_s = 60.0 * (FIRST + 900)
    assert "analogues" in forecasts.points(5.0, at_s, history)
    assert "analogues" not in forecasts.points(600.0, at_s, history), "it learns first"
    for _ in range(20):
        forecasts.work(1.0)
    one = MinuteRate(FIRST + 900, rate(900))
    forecasts.observe([one])
    forecasts.finish()
    assert forecasts.points(600.0, at_s, history)["analogues"] == pytest.approx(400.0, rel=0.3)
