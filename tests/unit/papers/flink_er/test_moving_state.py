"""Figure 11 from made-up batches and moves."""

import pytest

from tests.unit.papers.flink_er.made_up import state_move
from tidegate.errors import TidegateError
from tidegate.papers.flink_er.moving_state import aims, told
from tidegate.papers.flink_er.state_moves import CAMPAIGNS, FEW, MANY, told_by
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.result import BatchResult

OPERATOR = CAMPAIGNS.operator
SHARDS = 12
RESTART = 8


def result(ended_s: float, tasks: int, fetched: int = 0) -> BatchResult:
    """A batch whose tasks are on executors of their own, with consecutive shards each."""
    route = tuple(shard * tasks // SHARDS for shard in range(SHARDS))
    return BatchResult(
        segment="main",
        plan=BatchPlan(0, 0, {OPERATOR: OperatorPlan(tasks, route)}),
        replayed=False,
        started_s=ended_s - 0.5,
        ended_s=ended_s,
        steps_s={},
        reports=tuple(
            TaskReport(
                batch_id=0,
                operator=OPERATOR,
                task=task,
                rows_in=10,
                rows_out=0,
                busy_s=0.1,
                function_s=0.1,
                executor="host",
                started_s=ended_s - 0.5,
                durable_bytes=fetched,
                node=f"node {task}",
            )
            for task in range(tasks)
        ),
        executors=MANY,
    )


def results() -> list[BatchResult]:
    """A gap of a second, two at the rescale and six at the restart."""
    ends = [9.0, 10.0, 11.0, 12.0, 13.0, 15.0, 16.0, 17.0, 23.0, 24.0]
    tasks = [FEW] * 5 + [MANY] * 5
    fetched = [0, 0, 0, 0, 0, 100, 0, 0, 1000, 0]
    return [result(*one) for one in zip(ends, tasks, fetched, strict=True)]


def test_both_ways_to_other_tasks_are_found() -> None:
    found = told_by(results(), RESTART, CAMPAIGNS, "500 campaigns")
    assert (found.rescaled.extra_s, found.restarted.extra_s) == pytest.approx((1.0, 5.0))
    assert (found.rescaled.fetched_bytes, found.restarted.fetched_bytes) == (400, 4000)
    assert found.moved_shards == pytest.approx(0.5)


def test_tasks_that_were_not_changed_are_told() -> None:
    with pytest.raises(TidegateError, match="not rescaled and restarted"):
        told_by(results()[:5], RESTART, CAMPAIGNS, "500 campaigns")
    with pytest.raises(TidegateError, match="not rescaled and restarted"):
        told_by(results()[:RESTART], RESTART, CAMPAIGNS, "500 campaigns")


def test_a_rescale_has_to_fetch_less_and_be_shorter_than_a_restart() -> None:
    assert all(aim.met for aim in aims([state_move()]))
    assert [aim.met for aim in aims([state_move(share=1.2)])] == [False, True, True]
    assert [aim.met for aim in aims([state_move(rescale_s=3.0)])] == [True, False, False]


def test_the_papers_mapping_moves_half_of_the_buckets() -> None:
    found = told([state_move()])
    assert found.compared[-1].paper == "51% by eq. 8" and found.compared[-1].ours == "25%"
    assert [line.name for line in found.pictures[0].lines] == [
        "TwitterSentiment, rescale",
        "TwitterSentiment, restart",
    ]


def test_wrong_answers_make_the_whole_run_wrong() -> None:
    found = told([state_move(), state_move(wrong="a window is missing")])
    assert found.wrong and found.notes[-1] == "a window is missing"
