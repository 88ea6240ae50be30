"""The experiments of Elasticutor, in small: the long ones run by command."""

from pathlib import Path

import pytest

from tidegate.apps.micro.application import CALCULATOR
from tidegate.apps.micro.full_run import FullRun
from tidegate.apps.micro.moves import measure_moves
from tidegate.apps.micro.options import MicroOptions
from tidegate.apps.micro.throughput import measure_throughput
from tidegate.apps.paradigms import NAIVE, OURS, RESOURCE_CENTRIC, STATIC
from tidegate.apps.sse.throughput import measure_exchange
from tidegate.errors import AskedWrongly

pytestmark = [pytest.mark.spark, pytest.mark.experiment]
"""Run by `make apps`: it takes too long for `make test`."""


SKEWED = MicroOptions(keys=200, skew=0.8, omega=20.0, state_kb=1.0, shards=32)
UNEVEN = MicroOptions(keys=200, skew=1.2, omega=20.0, state_kb=1.0, shards=32)
"""The first route alone is out of balance, so whoever balances has to change it."""


@pytest.mark.parametrize("paradigm", [STATIC, OURS])
def test_throughput_is_measured(spark, paradigm: str) -> None:
    found = measure_throughput(spark, paradigm, SKEWED, tasks=4, seconds=3.0, batch_s=0.1)
    assert found.exactly_once
    assert len(found.rows_per_s) >= 3
    assert all(rows >= 0.0 for rows in found.rows_per_s)
    assert 0.0 < found.mean_rows_per_s <= 4000.0
    assert found.mean_latency_s > 0.1
    assert found.breaks_s == ()
    assert paradigm == OURS or found.moves == 0


@pytest.mark.parametrize("paradigm", [NAIVE, RESOURCE_CENTRIC])
def test_the_rivals_move_shards_and_lose_no_row(spark, paradigm: str) -> None:
    found = measure_throughput(
        spark,
        paradigm,
        UNEVEN,
        tasks=4,
        seconds=4.0,
        batch_s=0.1,
        generator_tasks=(2, 2),
    )
    assert found.exactly_once
    assert found.moves >= 1
    assert (len(found.breaks_s) >= 1) is (paradigm == RESOURCE_CENTRIC), "only it restarts"
    assert all(pause_s > 0.0 for pause_s in found.breaks_s)


def test_a_pipeline_that_starts_again_has_moved_its_shards_already(spark, tmp_path: Path) -> None:
    full = FullRun(spark, SKEWED, tmp_path, tasks=4, batch_rows=200, seed=1)
    try:
        full.await_batches(2)
        full.again()
        before = full.results[-1].plan.operators[CALCULATOR].route
        stopped = len(full.results)
        shard = before.index(0)
        first = full.await_batches(1)[0]
        assert first.plan.operators[CALCULATOR].route == before, "nothing was to move"
        full.again({CALCULATOR: {shard: 3}})
        moved = full.await_batches(1)
    finally:
        full.stop()
    ids = [result.plan.batch_id for result in full.results]
    assert ids == list(range(len(ids))) and len(ids) > stopped
    route = moved[0].plan.operators[CALCULATOR].route
    assert [at for at, task in enumerate(route) if task != before[at]] == [shard]
    assert route[shard] == 3
    assert full.exactly_once()


@pytest.mark.parametrize("paradigm", [STATIC, NAIVE, RESOURCE_CENTRIC, OURS])
def test_the_exchange_is_measured_with_right_answers(spark, paradigm: str) -> None:
    found = measure_exchange(
        spark, paradigm, tasks=4, seconds=4.0, batch_s=0.4, stocks=60, warm_batches=2
    )
    assert found.exactly_once, "the answers are not those of a sequential replay"
    assert found.batches >= 1 and found.mean_latency_s > 0.0
    assert 0.0 < found.mean_rows_per_s <= 400.0, "an order takes 10 ms of one of 4 tasks"
    assert 0.0 < found.busy_share <= 1.0
    assert paradigm == RESOURCE_CENTRIC or found.breaks_s == ()
    assert paradigm != STATIC or found.moves == 0


def test_more_tasks_than_cores_are_refused(spark) -> None:
    with pytest.raises(AskedWrongly):
        measure_throughput(spark, STATIC, SKEWED, tasks=64, seconds=1.0)


def test_moves_are_measured(spark) -> None:
    found = measure_moves(spark, 64.0, keys=200, moves=2, around=1, warm_batches=3, batch_s=0.02)
    assert len(found) == 2, "one process has no other executor"
    for move in found:
        assert not move.between
        assert move.exactly_once
        assert move.fetched_bytes == 0
        assert move.batch_s > 0.0 and move.median_s > 0.0
