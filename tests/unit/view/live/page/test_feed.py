"""What a page keeps of a pipeline: bounded, in order, and the same as the records say."""

import math
from dataclasses import replace

import numpy as np

from tests.helpers.pipeline_worlds import controller, world
from tests.helpers.synthetic_surge import NOTE, REASONS, START_S, surge
from tidegate.control.control_failure import ControlFailure
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.view.live.page.feed import DECISIONS, NOTES, TICKS, Feed, OracleUntil
from tidegate.view.live.page.panels.cost import oracle_words
from tidegate.view.live.page.panels.headline import state_of
from tidegate.view.live.page.ticks import NAMES, columns_of_ticks, hottest_shard
from tidegate.view.summary import summarise


def fed(records, **options) -> Feed:
    feed = Feed("clicks", **options)
    for record in records:
        feed.add(record)
    return feed


def test_columns_are_those_of_the_records() -> None:
    records = surge()
    columns = columns_of_ticks([one.tick for one in fed(records).since(0)])
    assert set(columns) == set(NAMES)
    assert columns["time"].tolist() == [1000.0 * one.measurement.at_s for one in records]
    assert columns["load"].tolist() == [one.measurement.arrival_rate for one in records]
    assert columns["granted"].tolist() == [one.measurement.cores_granted for one in records]
    without = [one.measurement.latency is None for one in records]
    assert np.isnan(columns["mean"]).tolist() == without and any(without)
    assert np.isnan(columns["forecast"]).all(), "these records have no forecast"


def test_a_session_gets_each_tick_once() -> None:
    records, feed = surge(), Feed("clicks")
    seen = []
    for place, record in enumerate(records):
        feed.add(record)
        if place % 7 == 0:
            seen += feed.since(len(seen))
    seen += feed.since(len(seen))
    assert [one.number for one in seen] == list(range(len(records)))
    assert feed.since(len(seen)) == []


def test_it_is_bounded() -> None:
    feed = Feed("clicks")
    records = surge()
    for number in range(TICKS + 500):
        record = records[number % len(records)]
        decision = replace(record.decision, cores=number, notes=(f"note {number}",))
        feed.add(replace(record, decision=decision, acted=True))
    assert feed.count == TICKS + 500
    assert len(feed.since(0)) == TICKS
    assert feed.since(0)[0].number == 500
    assert len(feed.decisions()) == DECISIONS
    assert next(note for _, note in feed.notes()) == f"note {TICKS + 499}"
    assert len(feed.notes()) == NOTES


def test_decisions_are_told_with_reasons_newest_first() -> None:
    told = fed(surge()).decisions()
    assert [one.reason for one in told] == [REASONS[tick] for tick in sorted(REASONS, reverse=True)]
    held = next(one for one in told if not one.acted)
    assert held.outcome == "held back: the maximum is 4"


def test_a_decision_that_is_held_back_again_and_again_is_told_once() -> None:
    held = surge()[20]
    feed = fed([replace(held, tick=number) for number in range(5)])
    (told,) = feed.decisions()
    assert told.times == 5


def test_notes_have_the_time_at_which_they_were_last_said() -> None:
    assert fed(surge()).notes() == [(START_S + 15, NOTE)]


def test_totals_are_those_of_the_summary() -> None:
    records, totals = surge(), fed(surge()).totals
    summary = summarise(records)
    assert totals.core_seconds == summary.core_seconds
    assert totals.cost == summary.cost
    assert totals.within_target == summary.within_target
    assert totals.most_cores == summary.static_cores


def test_a_failure_lasts_until_the_next_record() -> None:
    feed = fed(surge()[:3])
    failure = ControlFailure(START_S, 1, "no answer")
    feed.failed(failure)
    assert feed.failure == failure and feed.totals.failures == 1
    feed.add(surge()[3])
    assert feed.failure is None and feed.totals.failures == 1


def test_silence_is_told_by_the_clock() -> None:
    last_s = surge()[-1].measurement.at_s
    assert fed(surge(), clock=lambda: last_s + 40.0).silent_s() == 40.0
    assert Feed("empty").silent_s() == 0.0


def test_the_network_is_drawn_from_a_run() -> None:
    records = simulate(world(), controller()).records
    feed = fed(records)
    graph = feed.graph()
    assert graph is not None and graph.operator == "count"
    assert feed.graph() == graph, "nothing new came"
    assert feed.most_cores == 12
    forecasts = [one.tick.forecast for one in feed.since(0)]
    assert not math.isnan(forecasts[-1])


def test_the_hottest_shard_has_most_rows() -> None:
    one = surge()[0].measurement.operators[1]
    assert hottest_shard(replace(one, shard_rows=(1, 5, 2))) == (1, 0.625)
    assert hottest_shard(replace(one, shard_rows=())) is None
    assert hottest_shard(replace(one, shard_rows=(0, 0))) is None


def test_a_run_that_is_known_to_be_over_says_so_at_once() -> None:
    last = surge()[-1]
    feed = fed(surge(), clock=lambda: last.measurement.at_s)
    assert state_of(feed, last)[1].startswith("On target")
    feed.over = True
    kind, words = state_of(feed, last)
    assert kind == "unknown"
    assert words.startswith("The run ended at ") and "on target" in words


def test_the_oracle_is_said_with_the_time_until_which_it_is_known() -> None:
    known = OracleUntil(START_S, 200.0, 250.0)
    words = oracle_words(known, up_to_date=True)
    assert words == (
        "With the future known, 200 would have held the target (the oracle); 1.25 times as many"
        " were used."
    )
    words = oracle_words(replace(known, within=0.9, estimated=True), up_to_date=False)
    assert words.startswith("Until 22:13:20 UTC: with the future known, about 200 would")
    assert "held the target 90 % of the time" in words
