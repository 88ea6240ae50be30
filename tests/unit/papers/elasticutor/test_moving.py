"""Figures 8 and 9 from made-up moves."""

import pytest

from tests.unit.papers.elasticutor.runs import move
from tidegate.papers.elasticutor.moving import (
    LARGE_KB,
    breakdown,
    cost_ms,
    parts_ms,
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
    assert parts["waiting for the batch boundary"] == pytest.approx(200.0)
    assert parts_ms([]) == {}


def test_the_breakdown_names_both_places_and_the_rival() -> None:
    rows = {row.name: row for row in breakdown(MOVES, 3000.0)}
    assert rows["within an executor: longer batch in all, ms"].ours == 20.0
    assert rows["between executors: longer batch in all, ms"].ours == 100.0
    assert rows["resource-centric: synchronisation, ms"].ours == 3000.0
    assert breakdown(MOVES, None)[-1].ours is None


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
