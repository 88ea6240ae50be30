"""The overload paper's experiment as an app: every row counted, every answer checked."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tidegate.apps.collected import Collected
from tidegate.apps.planetlab.load import node_rates
from tidegate.apps.planetlab.noted_rows import NotedRows
from tidegate.apps.planetlab.queries import readings
from tidegate.apps.planetlab.reference import QueryAnswers, judged
from tidegate.apps.planetlab.run import start_planetlab
from tidegate.apps.planetlab.watch import Watch
from tidegate.control import assemble
from tidegate.workload.cpu import cpu_series

pytestmark = pytest.mark.spark


class Half:
    """A last remedy that always keeps half."""

    def __init__(self, inner) -> None:
        self._inner = inner
        self.name = inner.name

    def decide(self, measurement, constraints):
        return replace(self._inner.decide(measurement, constraints), keep=0.5)


def test_the_nodes_rates_are_the_papers() -> None:
    profile = node_rates(10)
    per_second = [
        profile.count((second + 1) * 1000) - profile.count(second * 1000)
        for second in (5, 15, 25, 35, 45)
    ]
    assert per_second == [500, 1000, 1500, 1000, 500]


def test_every_query_gets_every_reading() -> None:
    series = np.array([[10.0, 20.0], [30.0, 40.0]])
    rows = pa.table(
        {
            "key": [0, 1, 1],
            "timestamp": pa.array([0, 0, 1_000_000], pa.timestamp("us", "UTC")),
            "_weight": [1.0, 2.0, 4.0],
        }
    )
    asked = readings(series, queries=2)(rows)
    assert asked["query"].to_pylist() == [0, 0, 0, 1, 1, 1]
    assert asked["cpu"].to_pylist() == [10.0, 20.0, 40.0] * 2
    assert asked["_weight"].to_pylist() == [1.0, 2.0, 4.0] * 2
    assert asked["timestamp"][2].as_py() == asked["timestamp"][5].as_py()


def test_every_row_of_every_query_is_kept_or_shed_and_the_answers_are_those_of_the_kept_rows(
    spark, tmp_path, wait_for, monkeypatch
) -> None:
    monkeypatch.setattr(assemble, "SheddingPolicy", lambda policy, *_, **__: Half(policy))
    series = cpu_series()
    run = start_planetlab(spark, series, tmp_path, queries=3, target_s=2.0, shed=True, row_s=1e-6)
    watch = Watch(run, warm_s=0.0)
    run.loop.watchers.append(watch)
    try:
        wait_for(
            lambda: (
                run.loop.failure
                or (
                    any(count.shed and count.kept for count in run.counts().values())
                    and watch.ages.oldest.total > 2
                )
            ),
            run.queries["main"],
        )
        assert run.loop.failure is None
    finally:
        run.stop()
    counts = run.counts()["source"]
    nodes = {part.name: part for part in counts.classes}
    assert {str(node) for node in range(10)} <= set(nodes)
    assert counts.offered == sum(part.offered for part in nodes.values())
    assert counts.kept == sum(part.kept for part in nodes.values())
    assert nodes["other"].offered == 0
    assert 0 < counts.shed < counts.offered
    answers = QueryAnswers.of(Collected(tmp_path / "answers").rows())
    assert answers.rows_per_query(3).tolist() == [counts.kept] * 3
    kept = NotedRows(tmp_path / "kept").rows()
    found = judged(series, 1, 3, counts, kept, answers)
    assert found.correct, found.said
    assert not judged(series, 2, 3, counts, kept, answers).correct
    check_ages(watch, kept)


def check_ages(watch: Watch, kept: pa.Table) -> None:
    """Results are at least as old as the youngest row in them, by the rows that were kept."""
    ages = watch.ages
    assert 0 < ages.rows.total <= kept.num_rows
    assert ages.oldest.total == ages.newest_part.total
    assert 0.0 < ages.newest_part.mean_s <= ages.oldest.mean_s
    # A result that is there has its oldest row, so no row can be older than the oldest result.
    assert ages.rows.percentile_s(100) <= ages.oldest.percentile_s(100)
