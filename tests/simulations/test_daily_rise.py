"""The load ahead at a horizon of minutes, where the last ticks do not tell it."""

import numpy as np

from tidegate.control.latency.load_ahead import LoadForecast

MIDNIGHT_S = 1_699_833_600.0
TICK_S = 30.0
HORIZON = 4
"""Ticks: two minutes."""
A_DAY = 2880
"""Ticks."""


def rate(at_s: float) -> float:
    """A load that triples within four minutes at nine, and falls in the evening."""
    minute = (at_s / 60.0) % 1440
    return 300.0 + 600.0 * min(max((minute - 540) / 4.0, 0.0), 1.0) * (minute < 1080)


def two_days() -> tuple[list[float], list[float], LoadForecast]:
    random = np.random.default_rng(3)
    ahead, planned, actual = LoadForecast(tick_s=TICK_S), [], []
    for tick in range(1, 2 * A_DAY):
        at_s = MIDNIGHT_S + tick * TICK_S
        value = rate(at_s) * float(np.exp(0.02 * random.standard_normal()))
        ahead.observe(value, at_s)
        planned.append(ahead.within(HORIZON).planned)
        actual.append(value)
    return planned, actual, ahead


def test_a_daily_rise_is_planned_for_before_it_comes_on_the_second_day() -> None:
    planned, actual, _ = two_days()
    highest = [max(actual[i + 1 : i + 1 + HORIZON]) for i in range(len(actual) - HORIZON)]
    share = np.array(planned[: len(highest)]) / np.array(highest)
    rise = [(day * 1440 + 537) * 2 for day in range(2)]
    met = [float(np.mean(share[begin : begin + 14] >= 0.85)) for begin in rise]
    assert met[0] <= 0.5, "nothing announced the first one"
    assert met[1] > 0.8
    second = share[A_DAY:]
    assert np.mean(second >= 0.93) > 0.97
    assert np.mean(second) < 1.15, "cover is not bought with a margin for all of the day"
