"""Figures 6 and 7 from made-up runs: points, ratios and aims."""

import pytest

from tests.unit.papers.elasticutor.runs import done
from tidegate.apps.paradigms import OURS, RESOURCE_CENTRIC, STATIC
from tidegate.errors import AskedWrongly
from tidegate.papers.elasticutor import instants
from tidegate.papers.elasticutor.dynamics import (
    OMEGAS,
    Point,
    aims,
    compared,
    kept_rows,
    pictures,
    points,
    ratios,
    seconds_of,
)
from tidegate.papers.elasticutor.sessions import SHARDS, TASKS
from tidegate.papers.elasticutor.skews import (
    PAPERS_SKEW,
    SECOND_SKEW,
    asked_skew,
    matching_skew,
    static_delta,
)

RATES = {STATIC: 100.0, RESOURCE_CENTRIC: 80.0, OURS: 150.0}


def test_every_point_is_measured_once() -> None:
    full, quick = points(0.8, quick=False), points(0.8, quick=True)
    assert len(set(full)) == len(full) == 2 * 3 * len(OMEGAS)
    assert set(quick) < set(full)
    assert points(PAPERS_SKEW, quick=False) == [p for p in full if p.skew == PAPERS_SKEW]


def test_a_shuffle_falls_into_every_point() -> None:
    for point in points(0.8, quick=False):
        if point.omega > 0.0:
            assert seconds_of(point, quick=False) * point.omega / 60.0 >= 1.0


def test_aims_are_met_by_what_the_paper_shows() -> None:
    found = {point: done(RATES[point.paradigm]) for point in points(0.8, quick=False)}
    assert ratios(found, 0.8, OURS, STATIC) == dict.fromkeys(OMEGAS, 1.5)
    assert all(aim.met for aim in aims(found, 0.8))
    assert len(compared(found)) == 2 * len(found)
    assert [len(picture.lines) for picture in pictures(found)] == [3, 3, 3, 3]


def test_restarts_may_pay_while_keys_are_shuffled_rarely() -> None:
    """As in the paper, resource-centric has to be below static at the highest omega alone."""
    found = {point: done(RATES[point.paradigm]) for point in points(0.8, quick=False)}
    found[Point(0.8, 2.0, RESOURCE_CENTRIC)] = done(140.0)
    assert all(aim.met for aim in aims(found, 0.8))
    found[Point(0.8, 2.0, RESOURCE_CENTRIC)] = done(160.0)
    found[Point(0.8, 16.0, RESOURCE_CENTRIC)] = done(90.0)
    assert [aim.name for aim in aims(found, 0.8) if not aim.met] == [
        "resource-centric over ours, skew 0.8, highest of omega > 0",
        "resource-centric over static, skew 0.8, omega 16",
    ]


def test_what_is_left_with_the_most_shuffles_is_beside_the_papers_words() -> None:
    found = {point: done(RATES[point.paradigm]) for point in points(0.8, quick=False)}
    found[Point(0.8, 16.0, RESOURCE_CENTRIC)] = done(20.0)
    rows = {row.name: row for row in kept_rows(found)}
    assert len(rows) == 6
    left = rows["skew 0.8, resource-centric: throughput at omega 16 over that at 0"]
    assert (left.paper, left.ours) == ("useless", 0.25)
    assert rows["skew 0.8, ours: throughput at omega 16 over that at 0"].paper == "marginal loss"
    quick = {point: done(100.0) for point in points(0.8, quick=True)}
    assert len(kept_rows(quick)) == 3, "with the paper's skew there is one omega alone"


def test_one_bad_point_misses_an_aim() -> None:
    found = {point: done(RATES[point.paradigm]) for point in points(0.8, quick=True)}
    found[Point(0.8, 16.0, OURS)] = done(130.0)
    found[Point(PAPERS_SKEW, 16.0, RESOURCE_CENTRIC)] = done(120.0, exactly_once=False)
    missed = [aim.name for aim in aims(found, 0.8) if not aim.met]
    assert missed == [
        "ours over static, skew 0.8, least of all omegas",
        "runs whose state has every row once",
    ]


def test_a_skew_costs_more_on_more_tasks() -> None:
    assert static_delta(0.5, 24, 256) < static_delta(0.5, 256, 8192)
    assert static_delta(0.5, 24, 256) < static_delta(SECOND_SKEW, 24, 256)
    match = matching_skew()
    assert static_delta(match, TASKS, SHARDS) == pytest.approx(
        static_delta(0.5, 256, 8192), rel=0.02
    )


def test_the_skew_can_be_asked_for() -> None:
    assert asked_skew({}) == SECOND_SKEW
    assert asked_skew({"skew": "0.9"}) == 0.9
    for wrong in ("much", "-1"):
        with pytest.raises(AskedWrongly):
            asked_skew({"skew": wrong})


def test_dips_and_low_seconds() -> None:
    series = (100.0, 100.0, 20.0, 85.0, 100.0)
    assert instants.dip(series) == pytest.approx(0.2)
    assert instants.low_seconds(series, (1.5,)) == [2]
    assert (instants.dip(()), instants.low_seconds((), (1.0,))) == (1.0, [])


def test_low_seconds_are_counted_from_a_shuffle_until_it_is_over() -> None:
    good, bad = 100.0, 50.0
    series = (bad, good, good, good, bad, good, bad, good, good, bad, good, good, good, good)
    assert instants.low_seconds(series, (3.2,)) == [2], "the others are not of the shuffle"
    assert instants.low_seconds(series, (3.2, 5.9)) == [1, 1], "only up to the next shuffle"
    assert instants.low_seconds(series, (10.0,)) == [0]
    assert instants.low_seconds(series, ()) == []


def test_ours_has_to_pause_less() -> None:
    stops = done(80.0, rows_per_s=(100.0, 0.0, 100.0), shuffled_s=(0.5,), longest_over_median=5.0)
    moves = done(150.0, rows_per_s=(150.0, 120.0, 150.0), longest_over_median=1.3)
    found = {STATIC: [done(100.0)], RESOURCE_CENTRIC: [stops, stops], OURS: [moves, moves]}
    assert all(aim.met for aim in instants.aims(found))
    swapped = {**found, OURS: found[RESOURCE_CENTRIC], RESOURCE_CENTRIC: found[OURS]}
    assert [aim.met for aim in instants.aims(swapped)] == [False, False, False, True]
    rows = {row.name: row for row in instants.compared(found)}
    assert rows["resource-centric: low seconds after a shuffle, mean"].ours == 1.0
    assert rows["ours: low seconds after a shuffle, mean"].paper == "1 to 3"
    assert rows["static: low seconds after a shuffle, mean"].ours is None, "it saw no shuffle"
