"""The overload paper's experiment as an app: nodes counted apart, whoever sheds."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tidegate.apps.planetlab import Planetlab, node_rates, readings, start_planetlab
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


def test_offered_is_kept_and_shed_for_every_node(spark, tmp_path, wait_for, monkeypatch) -> None:
    monkeypatch.setattr(assemble, "SheddingPolicy", lambda policy, *_, **__: Half(policy))
    run = start_planetlab(
        spark, cpu_series(), str(tmp_path / "ck"), queries=2, target_s=2.0, shed=True
    )
    try:
        wait_for(
            lambda: (
                run.loop.failure
                or any(count.shed and count.kept for count in run.counts().values())
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
    found = Planetlab(queries=2, records=[], counts=counts, latency_s=(1.0, 2.0)).document()
    assert found["mean_latency_s"] == 1.5
    assert found["nodes"]["3"]["shed"] == nodes["3"].shed
