"""Rows in each second, latency and moves, from the times of micro-batches alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.apps.micro.moves import Move, choose
from tidegate.apps.turns import (
    Turn,
    latency_percentile_s,
    longest_over_median,
    mean_latency_s,
    mean_rate,
    moved,
    rows_per_second,
    turns_of,
)
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.result import BatchResult


def turns(*lengths: tuple[float, int]) -> list[Turn]:
    """Turns of so many seconds and rows, one after the other."""
    made, at_s = [], 100.0
    for seconds, rows in lengths:
        made.append(
            Turn(
                began_s=at_s,
                ended_s=at_s + seconds,
                rows=rows,
                moves=0,
                imbalance=1.0,
            )
        )
        at_s += seconds
    return made


def test_rows_are_spread_over_their_turn() -> None:
    assert rows_per_second(turns((2.0, 200), (0.5, 400), (1.5, 300))) == (
        100.0,
        100.0,
        500.0,
        200.0,
    )


def test_a_second_that_has_not_passed_is_left_out() -> None:
    assert rows_per_second(turns((1.75, 175))) == (100.0,)
    assert rows_per_second([]) == ()


@given(st.lists(st.tuples(st.floats(0.1, 5.0), st.integers(0, 1000)), min_size=1, max_size=8))
def test_no_row_is_counted_twice(lengths: list[tuple[float, int]]) -> None:
    made = turns(*lengths)
    assert sum(rows_per_second(made)) <= sum(turn.rows for turn in made) + 1e-6
    assert min(rows_per_second(made), default=0.0) >= -1e-6


def test_a_break_counts_for_the_rows_behind_it() -> None:
    made = turns((1.0, 100), (1.0, 100), (4.0, 100))
    assert mean_latency_s(made) == pytest.approx(2.0)
    assert mean_rate(made) == pytest.approx(50.0)
    assert longest_over_median(made) == pytest.approx(4.0)


def test_a_percentile_counts_rows_and_not_batches() -> None:
    made = turns((1.0, 98), (3.0, 1), (2.0, 1))
    assert latency_percentile_s(made, 98.0) == pytest.approx(1.0)
    assert latency_percentile_s(made, 99.0) == pytest.approx(2.0)
    assert latency_percentile_s(made, 100.0) == pytest.approx(3.0)
    assert latency_percentile_s([], 99.0) == 0.0


def result(number: int, route: tuple[int, ...], rows: tuple[int, ...]) -> BatchResult:
    """A batch that ends at second 2 * number + 1 and takes one second."""
    reports = tuple(
        TaskReport(
            batch_id=number,
            operator="calculator",
            task=task,
            rows_in=count,
            rows_out=0,
            busy_s=0.1,
            function_s=0.1,
            executor="here",
            started_s=0.0,
        )
        for task, count in enumerate(rows)
    )
    return BatchResult(
        segment="main",
        plan=BatchPlan(number, 0, {"calculator": OperatorPlan(len(rows), route)}),
        replayed=False,
        started_s=2.0 * number,
        ended_s=2.0 * number + 1.0,
        steps_s={},
        reports=reports,
        executors=1,
    )


def test_turns_are_read_from_results() -> None:
    results = [result(0, (0, 0, 1), (4, 4)), result(1, (0, 1, 1), (9, 3))]
    (turn,) = turns_of(results, "calculator")
    assert (turn.began_s, turn.ended_s) == (1.0, 3.0)
    assert (turn.rows, turn.moves, turn.imbalance) == (12, 1, 1.5)
    assert moved((0, 1, 2), (2, 1, 0)) == 2


def test_a_shard_moves_within_its_node_or_away_from_it() -> None:
    route, nodes = (0, 0, 0, 1, 2, 2, 3), ("a", "a", "b", "b")
    assert choose(route, nodes, 1, between=False) == (1, 1)
    assert choose(route, nodes, 2, between=True) == (2, 3)
    assert choose(route, ("a",) * 4, 0, between=True) is None
    assert choose(route, ("a", "b", "c", "d"), 0, between=False) is None


def test_the_cost_of_a_move_is_what_its_batch_took_longer() -> None:
    move = Move(
        state_kb=32.0, shard=3, between=True, batch_s=0.6, median_s=0.4, fetched_bytes=40_000
    )
    assert move.over_median == pytest.approx(1.5)
    assert move.document()["cost_s"] == pytest.approx(0.2)
