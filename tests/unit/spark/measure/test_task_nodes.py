"""Which node a task ran on, and whose cache that is."""

import numpy as np
import pytest

from tidegate.spark.batch.anchors import host_of
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.batch.worker import node_of
from tidegate.spark.measure.operator_meter import nodes_of
from tidegate.spark.state.files import Durable
from tidegate.spark.state.node_cache import NodeCache


def report(task: int, node: str) -> TaskReport:
    return TaskReport(
        batch_id=1,
        operator="n",
        task=task,
        rows_in=1,
        rows_out=1,
        busy_s=0.1,
        function_s=0.1,
        executor=f"{node}:there",
        started_s=0.0,
        shard_rows=(np.array([task]), np.array([1])),
        node=node,
    )


def test_nodes_stand_in_the_order_of_tasks() -> None:
    assert nodes_of([report(1, "b"), report(0, "a"), report(2, "a")]) == ("a", "b", "a")


def test_nothing_is_said_while_a_task_has_not_told() -> None:
    assert nodes_of([]) == ()
    assert nodes_of([report(0, "a"), report(2, "a")]) == ()
    assert nodes_of([report(0, "a"), report(1, "")]) == ()


def test_an_absolute_cache_is_the_hosts_and_a_relative_one_the_executors(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {}
    for executor in ("one", "other"):
        (tmp_path / executor).mkdir()
        monkeypatch.chdir(tmp_path / executor)
        for directory in (str(tmp_path), "cache"):
            cache = NodeCache(directory, Durable(str(tmp_path)), 8)
            found.setdefault(directory, set()).add(node_of(cache))
    assert len(found[str(tmp_path)]) == 1
    assert len(found["cache"]) == 2


def test_the_host_in_the_name_of_an_executor() -> None:
    assert host_of("executor_10.0.0.7_12") == host_of("executor_10.0.0.7_3") == "10.0.0.7"
    assert host_of("executor_rack_4_1") == "rack_4"
    assert host_of("10.0.0.7") == "10.0.0.7" and host_of("") == ""
