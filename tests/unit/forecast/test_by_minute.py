"""The forecasters of minutes learn what follows the clock, and never all in one tick."""

import json

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


def in_seconds(keeping: bool) -> list[dict[str, float]]:
    """A load by ticks of 10 s, whose horizon is longer from some minute on."""
    forecasts, history, points = MinuteForecasts(), MinuteRates(tick_s=10.0), []
    begin_s = 60.0 * (FIRST + 500)
    for tick in range(1, 6 * 150):
        at_s = begin_s + 10.0 * tick
        forecasts.observe(history.observe(rate(int(at_s // 60.0) - FIRST), at_s))
        forecasts.work(10.0)
        points.append(forecasts.points(30.0 if tick < 450 else 400.0, at_s, history))
        if keeping and tick % 5 == 0:  # a minute has six ticks, so it is each of them in turn
            before = json.dumps(forecasts.learned())
            assert json.dumps(forecasts.learned()) == before
    return points


def test_what_is_learned_can_be_kept_at_any_time_without_a_change() -> None:
    assert in_seconds(keeping=True) == in_seconds(keeping=False)


@pytest.mark.parametrize("more", [0, 1, 3, 7])
def test_a_restart_goes_on_with_what_was_still_to_be_learned(more: int) -> None:
    """Between the minute that was over and its last forecaster, and amid a new window."""
    forecasts, history = taught(range(500, 620), horizon_s=30.0)
    minute = MinuteRate(FIRST + 620, rate(620))
    history.refill([(minute.number, minute.rate)])
    forecasts.observe([minute])
    forecasts.points(400.0, minute.ended_s, history)
    for _ in range(more):
        forecasts.work(1.0)
    after, again = MinuteForecasts(), MinuteRates()
    again.recall(json.loads(json.dumps(history.learned())), 0.0)
    after.recall(json.loads(json.dumps(forecasts.learned())), 0.0, again)
    for tick in range(60):
        forecasts.work(1.0)
        after.work(1.0)
        at_s = minute.ended_s + tick
        found = after.points(400.0, at_s, again)
        # ARMA fits again from another start, so it stops at another digit.
        assert found == pytest.approx(forecasts.points(400.0, at_s, history), rel=1e-3)


def test_a_gap_of_days_is_a_few_jobs() -> None:
    forecasts, history = taught(range(600, 720))
    history.observe(400.0, 60.0 * (FIRST + 720) + 1.0)
    at_s = 60.0 * (FIRST + 720 + 6 * DAY) + 1.0
    over = history.observe(400.0, at_s)
    forecasts.observe(over)
    assert len(over) == 2 and len(forecasts._due) <= 12
    assert forecasts.points(90.0, at_s, history) == {}, "what was said before it is too old"
