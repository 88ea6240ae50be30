"""Every application runs under the load that table II pairs it with."""

from pathlib import Path

import numpy as np
import pytest

from tests.unit.papers.mst.week import trace, written
from tidegate.errors import AskedWrongly
from tidegate.papers.mst.loads import LOADS, OPTIONS, asked_weeks, paired, said
from tidegate.sim.capacity.applications import APPLICATIONS
from tidegate.workload.weeks import WEEKS


def test_every_application_has_one_load() -> None:
    named = [name for load in LOADS for name in load.applications]
    assert sorted(named) == sorted(APPLICATIONS)


def test_hashtags_have_tweets_and_flights_have_flights() -> None:
    by_app = {app.name: week.load.name for week, app in paired(asked_weeks({}), quick=False)}
    assert by_app.pop("rolling-hashtag-count") == "Tweets"
    assert by_app.pop("rolling-flight-distances") == "ADS-B"
    assert set(by_app.values()) == {"World Cup 98"}


def test_a_short_run_has_one_application_of_each_load() -> None:
    pairs = paired(asked_weeks({}), quick=True)
    assert [week.load.name for week, _ in pairs] == [load.name for load in LOADS]


def test_a_file_takes_the_place_of_a_generated_week(tmp_path: Path) -> None:
    counts = trace()
    weeks = asked_weeks({"twitter": written(tmp_path, "tweets", counts)})
    assert np.array_equal(weeks[1].forecasts.trace, counts)
    assert np.array_equal(weeks[2].forecasts.trace, WEEKS["flights-like"]())
    assert said(weeks) == (
        "Loads: World Cup 98 generated (worldcup-like); Tweets read from tweets.csv;"
        " ADS-B generated (flights-like)."
    )


@pytest.mark.parametrize("option", OPTIONS)
def test_a_file_that_is_not_there_is_refused(option: str) -> None:
    with pytest.raises(AskedWrongly, match=r"nowhere\.csv"):
        asked_weeks({option: "nowhere.csv"})
