"""Python workers that are started before a rescale needs them."""

import pytest

from tidegate.spark import python_workers as workers

pytestmark = pytest.mark.spark


def test_one_worker_per_core_once_per_application(spark, monkeypatch):
    monkeypatch.setattr(workers, "_begun", set())
    thread = workers.start_workers(spark)
    assert thread is not None
    assert workers.start_workers(spark) is None
    thread.join(60)
    assert not thread.is_alive()
    tracker = spark.sparkContext.statusTracker()
    job = max(tracker.getJobIdsForGroup("tidegate-workers"))  # in any order, of other tests as well
    (stage,) = tracker.getJobInfo(job).stageIds
    assert tracker.getStageInfo(stage).numTasks == spark.sparkContext.defaultParallelism
    assert tracker.getStageInfo(stage).numFailedTasks == 0
