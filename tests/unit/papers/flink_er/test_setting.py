"""The rising load, and that the applications' loads are what six and ten cores make of them."""

import pytest

from tidegate.papers.flink_er.experiments import (
    CAMPAIGNS,
    LEARNING,
    SENTIMENT,
    WORDCOUNT,
    LoadExperiment,
)
from tidegate.papers.flink_er.setting import MINUTES, MOST_GAIN, RISES_UNTIL, SLOW, RisingLoad

LOAD = RisingLoad(capacity=100.0, peak=1.5, minute_s=5.0)
ALL = (WORDCOUNT, SENTIMENT, LEARNING, CAMPAIGNS)


def test_the_load_rises_and_then_stays() -> None:
    rates = [LOAD.rate(minute) for minute in range(MINUTES + 1)]
    assert rates == sorted(rates)
    assert rates[0] == pytest.approx(100.0 * SLOW)
    assert set(rates[RISES_UNTIL:]) == {150.0}


def test_the_profile_is_the_load() -> None:
    profile = LOAD.profile()
    assert [profile.rate(minute * 5.0) for minute in (0, 4, 8, 15)] == pytest.approx(
        [LOAD.rate(minute) for minute in (0, 4, 8, 15)]
    )
    assert LOAD.seconds == MINUTES * 5.0


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.figure)
def test_the_peak_is_too_much_for_six_cores_and_not_for_ten(one: LoadExperiment) -> None:
    assert 1.2 < one.peak < MOST_GAIN
    assert set(one.visits) <= set(one.application.operators)
    one.application.check_options(one.extra)


def test_six_cores_carry_what_their_operators_leave() -> None:
    assert WORDCOUNT.load(5.0).capacity == pytest.approx(6 / (0.002 + 9 * 0.0015))
    assert CAMPAIGNS.load(5.0).capacity == pytest.approx(6 / (0.002 + 0.001 + 0.002 / 3))
