"""Figures 8 and 9 from made-up moves."""

from dataclasses import replace

import pytest

from tests.unit.papers.elasticutor.runs import done, move
from tidegate.papers.elasticutor.dynamics import all_right
from tidegate.papers.elasticutor.moving import (
    LARGE_KB,
    breakdown,
    central_aims,
    central_rows,
    cost_ms,
    parts_ms,
    pause_aims,
    size_aims,
    size_rows,
    upstream_rows,
)

MOVES = [move(32.0, 0.02, between=False), move(32.0, 0.1, between=True)]


def test_parts_add_up() -> None:
    parts = parts_ms(MOVES[1:])
    assert parts["reading state"] + parts["the rest of the batch"] == pytest.approx(
        parts["longer batch in all"]
    )
    assert parts["waiting for the end of the batch"] == pytest.approx(200.0)
    assert parts["from the end of a batch to the next"] == pytest.approx(30.0)
    assert parts_ms([]) == {}


def test_the_breakdown_names_both_places_and_the_rival() -> None:
    rows = {row.name: row for row in breakdown(MOVES, (2.0, 3.0, 4.0))}
    assert rows["within an executor: longer batch in all, ms"].ours == 20.0
    assert rows["between executors: longer batch in all, ms"].ours == 100.0
    assert rows["resource-centric: synchronisation, ms"].ours == 3000.0
    assert breakdown(MOVES, ())[-1].ours is None


def test_beside_the_papers_synchronisation_is_what_a_decision_waits() -> None:
    rows = [row for row in breakdown(MOVES, ()) if row.paper == 2.0]
    assert [row.ours for row in rows] == [30.0, 30.0], "not the wish in the middle of a batch"
    assert all("to the next" in row.name for row in rows)
    assert [row.paper for row in breakdown([], ())] == ["2 to 3 orders of magnitude above 2"]


def test_without_moves_or_restarts_an_aim_is_missed() -> None:
    assert [aim.met for aim in pause_aims(MOVES, (3.0,))] == [True, True, True]
    assert [aim.met for aim in pause_aims(MOVES, (0.1,))] == [True, True, False]
    assert [aim.met for aim in pause_aims(MOVES, ())] == [True, False]
    assert [aim.met for aim in pause_aims([], (3.0,))] == [False, True]


def test_a_large_shard_must_move_without_a_long_batch() -> None:
    small = MOVES
    good = [move(LARGE_KB, 0.05, between=False), move(LARGE_KB, 0.3, between=True)]
    assert all(aim.met for aim in size_aims({32.0: small, LARGE_KB: good}))
    slow = [move(LARGE_KB, 0.5, between=True, share=0.1)]
    assert [aim.met for aim in size_aims({LARGE_KB: slow})] == [False, False]
    assert [aim.met for aim in size_aims({LARGE_KB: good[:1]})] == [False]


def test_rows_have_what_was_measured() -> None:
    assert cost_ms([]) is None
    assert [row.ours for row in upstream_rows({1.0: MOVES, 16.0: MOVES})] == [20.0, 20.0]
    rows = {row.name: row.ours for row in size_rows({32.0: MOVES})}
    assert rows["32 KB, between executors: KB fetched"] == 32


def test_restarts_are_told_for_each_number_of_tasks_upstream() -> None:
    found = {1.0: done(1.0, breaks_s=(0.8, 1.0, 1.2)), 16.0: done(1.0, breaks_s=(1.5,))}
    assert [row.ours for row in central_rows(found)] == [1000.0, 1500.0]
    assert all("grows" in str(row.paper) for row in central_rows(found))
    assert central_aims(found)[0].met
    found[16.0] = done(1.0)
    assert central_rows(found)[1].ours is None
    assert not central_aims(found)[0].met, "there is nothing to compare with"


def test_a_lost_row_misses_the_aim_about_answers() -> None:
    assert all_right(MOVES).met
    lost = [*MOVES, replace(MOVES[0], exactly_once=False)]
    aim = all_right(lost)
    assert not aim.met and aim.name.endswith("every row once")
