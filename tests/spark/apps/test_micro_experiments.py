"""The experiments on the micro-benchmark, in small: the long ones run by command."""

import pytest

from tidegate.apps.micro.moves import measure_moves
from tidegate.apps.micro.options import MicroOptions
from tidegate.apps.micro.throughput import measure_throughput
from tidegate.apps.paradigms import OURS, STATIC
from tidegate.errors import AskedWrongly

pytestmark = [pytest.mark.spark, pytest.mark.experiment]
"""Run by `make apps`: it takes too long for `make test`."""


SKEWED = MicroOptions(keys=200, skew=0.8, omega=20.0, state_kb=1.0, shards=32)


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
