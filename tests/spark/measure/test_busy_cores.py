"""The tasks that run at a moment are counted, also right after others have ended."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tidegate.spark.measure.busy_cores import active_tasks

pytestmark = pytest.mark.spark
_PATIENCE_S = 120.0


def _await(place: Path, pattern: str, count: int) -> None:
    until_s = time.monotonic() + _PATIENCE_S
    while len(list(place.glob(pattern))) < count:
        assert time.monotonic() < until_s, f"waited for {count} of {pattern}"
        time.sleep(0.01)


def test_tasks_that_begin_right_after_others_count_at_once(spark, tmp_path) -> None:
    context = spark.sparkContext

    def job(place: str) -> int:
        def wait(rows: Iterator[object]) -> Iterator[int]:
            found = sum(1 for _ in rows)
            (Path(place) / f"at-work-{time.monotonic_ns()}").touch()
            _await(Path(place), "over", 1)
            yield found

        pairs = context.parallelize(range(8), 2).map(lambda number: (number % 2, number))
        return int(pairs.groupByKey(2).mapPartitions(wait).count())

    with ThreadPoolExecutor(1) as pool:
        for turn in range(4):
            place = tmp_path / str(turn)
            place.mkdir()
            running = pool.submit(job, str(place))
            try:
                _await(place, "at-work-*", 2)
                assert active_tasks(spark) == 2
            finally:
                (place / "over").touch()
            assert running.result(_PATIENCE_S) == 2
    assert active_tasks(spark) == 0
