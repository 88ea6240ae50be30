"""What the tasks of a foreign query's batches did, from Spark's own book of stages.

Nothing of ours runs in these tasks. But Spark keeps, for the last jobs, how many tasks their stages
had and how long those ran, and every job of a streaming query names its query and batch.
"""

import re
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tidegate.control.learning.row_work import StageRun, rowless_s

_BATCH = re.compile(r"batch = (\d+)")
_MOST_JOBS = 64
"""At most so many jobs are looked at in a tick; a batch without its work is measured as well."""


@dataclass(frozen=True, slots=True)
class BatchWork:
    """The tasks of one batch."""

    busy_s: float
    """The sum of their run times."""
    rowless_s: float
    """The part of it that they would have taken without any row, as far as can be told."""


class StageWork:
    """Reads the finished jobs of queries, each once."""

    def __init__(self, session: SparkSession) -> None:
        self._tracker: Any = session.sparkContext._jsc.sc().statusTracker()
        self._store: Any = session.sparkContext._jsc.sc().statusStore()
        self._newest: dict[str, int] = {}
        """The newest job that was read, for each run of a query."""

    def read(self, run_id: str) -> dict[int, BatchWork]:
        """The work of the batches whose jobs have ended since the last call, by batch id.

        A batch with several jobs may be told in parts; parts add up.
        """
        try:
            jobs = sorted(int(job) for job in self._tracker.getJobIdsForGroup(run_id))
        except Py4JError:
            return {}
        found: dict[int, BatchWork] = {}
        for job in [one for one in jobs if one > self._newest.get(run_id, -1)][-_MOST_JOBS:]:
            try:
                told = self._job(job)
            except Py4JError:  # Spark has forgotten it
                continue
            if told is None:
                break
            self._newest[run_id] = job
            batch_id, work = told
            before = found.get(batch_id, BatchWork(0.0, 0.0))
            found[batch_id] = BatchWork(
                before.busy_s + work.busy_s, before.rowless_s + work.rowless_s
            )
        return found

    def _job(self, job: int) -> tuple[int, BatchWork] | None:
        """The batch and the work of a job; None while it runs."""
        data = self._store.job(job)
        if str(data.status().toString()) == "RUNNING":
            return None
        batch = _BATCH.search(str(data.description().toString()))
        runs = []
        stages = data.stageIds().iterator()
        while stages.hasNext():
            stage = self._store.lastStageAttempt(stages.next())
            if str(stage.status().toString()) == "COMPLETE":
                runs.append(
                    StageRun(
                        tasks=int(stage.numTasks()),
                        busy_s=int(stage.executorRunTime()) / 1000.0,
                        read_rows=int(stage.inputRecords()),
                        shuffled_rows=int(stage.shuffleReadRecords()),
                    )
                )
        busy_s = sum(run.busy_s for run in runs)
        return (int(batch[1]) if batch else -1), BatchWork(busy_s, rowless_s(runs))
