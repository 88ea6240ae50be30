"""The oracle of a run that a page follows: up to date, within its share of a core, and bounded."""

from dataclasses import replace

import pytest

from tests.helpers.pipeline_worlds import controller, world
from tests.helpers.synthetic_surge import surge
from tidegate.commands import page_oracle
from tidegate.commands.oracle import best_of
from tidegate.commands.page_oracle import LEAST_PAUSE_S, SHARE, FollowedOracle, oracle_until
from tidegate.control.record import Record
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.view.live.page.feed import Feed


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return list(simulate(world(), controller()).records)


class Time:
    """A clock that stands still; what is computed takes `cost_s`."""

    def __init__(self) -> None:
        self.now_s, self.spent_s, self.cost_s = 100.0, 0.0, 0.0

    def spent(self) -> float:
        self.spent_s += self.cost_s / 2
        return self.spent_s


def followed(records: list[Record], time: Time) -> tuple[Feed, FollowedOracle]:
    feed = Feed("clicks")
    for record in records:
        feed.add(record)
    return feed, FollowedOracle(feed, records, clock=lambda: time.now_s, spent=time.spent)


def test_it_is_that_of_the_records(records: list[Record]) -> None:
    feed, oracle = followed(records, Time())
    assert feed.oracle is None
    oracle.look()
    best = best_of(records)
    assert best is not None and feed.oracle is not None
    assert feed.oracle.core_seconds == best.core_seconds
    assert feed.oracle.at_s == records[-1].measurement.at_s
    assert feed.oracle.used == pytest.approx(feed.totals.core_seconds)
    assert feed.oracle.core_seconds < feed.oracle.used


def test_it_follows_the_run_within_its_share_of_a_core(records: list[Record]) -> None:
    time = Time()
    time.cost_s = 2.0
    feed, oracle = followed(records[:60], time)
    oracle.look()
    first = feed.oracle
    assert first is not None and first.at_s == records[59].measurement.at_s
    oracle.add(records[60])
    time.now_s += time.cost_s / 2 / SHARE - 1.0
    oracle.look()
    assert feed.oracle is first, "it would take more than its share"
    time.now_s += 2.0
    oracle.look()
    assert feed.oracle is not None and feed.oracle.at_s == records[60].measurement.at_s
    second = feed.oracle
    time.now_s += 10_000.0
    oracle.look()
    assert feed.oracle is second, "nothing new came"


def test_a_quick_one_is_not_computed_at_every_tick(records: list[Record]) -> None:
    time = Time()
    feed, oracle = followed(records[:60], time)
    oracle.look()
    first = feed.oracle
    oracle.add(records[60])
    time.now_s += LEAST_PAUSE_S - 1.0
    oracle.look()
    assert feed.oracle is first


def test_a_run_that_grows_too_long_has_none(
    records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_oracle, "TICKS", 60)
    time = Time()
    feed, oracle = followed(records[:60], time)
    oracle.look()
    assert feed.oracle is not None
    for record in records[60:80]:
        oracle.add(record)
    time.now_s += 1000.0
    oracle.look()
    assert feed.oracle is None
    assert len(oracle._records) == 61


def test_where_it_cannot_be_told_there_is_none(records: list[Record]) -> None:
    assert oracle_until(surge()) is None, "the options of these records are unknown"
    told = replace(records[30], assembly={**(records[0].assembly or {}), "target": {"other": 1}})
    assert oracle_until([*records[:30], told, *records[31:]]) is None, "the target was changed"
