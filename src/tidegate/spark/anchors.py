"""Keep a task on the executor that has its state.

Spark places the tasks behind a shuffle anywhere. A task that also reads a cached block is placed
where that block is. An *anchor* is a tiny cached frame with one row per task, partitioned like the
operator's rows, and the operator reads both (DESIGN: the cogroup of anchor and rows).

A new anchor is made when the number of tasks or the executors change. It is made to lie where the
old one did, task by task: its rows start as blocks that prefer those executors, and a shuffle-read
task prefers the executor that wrote its input. Tasks that are new go to the executors with the
fewest. So a rescale or a lost executor moves only what must move.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidegate.spark.worker import TASK

_ALONE = frozenset({"driver"})


def working_executors(session: SparkSession) -> frozenset[str]:
    """Spark's names ("executor_HOST_ID") of the executors; `driver` when all is one process."""
    active = session.sparkContext._jsc.sc().statusStore().executorList(True)
    found = set()
    for number in range(active.size()):
        executor = active.apply(number)
        if executor.id() != "driver":
            found.add(f"executor_{executor.hostPort().rsplit(':', 1)[0]}_{executor.id()}")
    return frozenset(found) or _ALONE


@dataclass(frozen=True, slots=True)
class Anchor:
    """The anchor of one operator."""

    frame: DataFrame
    tasks: int
    executors: frozenset[str]

    def places(self) -> list[str | None]:
        """The executor of each task's block, as Spark names it."""
        context = self.frame.sparkSession.sparkContext._jsc.sc()
        relation = self.frame._jdf.queryExecution().withCachedData()
        blocks = relation.cacheBuilder().cachedColumnBuffers()
        found: list[str | None] = []
        for task in range(self.tasks):
            preferred = context.getPreferredLocs(blocks, task)
            found.append(str(preferred.head()) if preferred.nonEmpty() else None)
        return found


def spread(old: list[str | None], tasks: int, executors: frozenset[str]) -> list[str]:
    """An executor for each task: where it was, else the one with the fewest tasks."""
    kept = [place if place in executors else None for place in old[:tasks]]
    kept += [None] * (tasks - len(kept))
    most = -(-tasks // len(executors))
    load: Counter[str] = Counter()
    chosen: list[str | None] = []
    for place in kept:
        stays = place is not None and load[place] < most
        if place is not None and stays:
            load[place] += 1
        chosen.append(place if stays else None)
    final: list[str] = []
    for place in chosen:
        if place is None:
            place = min(sorted(executors), key=lambda name: load[name])
            load[place] += 1
        final.append(place)
    return final


@dataclass(slots=True)
class Anchors:
    """The anchors of a segment's operators."""

    session: SparkSession
    _kept: dict[str, Anchor] = field(default_factory=dict)

    def of(self, operator: str, tasks: int, executors: frozenset[str]) -> DataFrame:
        """The anchor of an operator with so many tasks on these executors."""
        kept = self._kept.get(operator)
        if kept is not None and kept.tasks == tasks and kept.executors == executors:
            return kept.frame
        if executors == _ALONE:
            rows = self.session.range(0, tasks, 1, tasks).selectExpr(f"cast(id as int) as {TASK}")
        else:
            places = spread([] if kept is None else kept.places(), tasks, executors)
            rows = _placed(self.session, places)
        frame = rows.repartitionById(tasks, F.col(TASK)).persist()
        if executors != _ALONE:
            frame.count()  # now, while nothing else runs, so that every block gets its place
        if kept is not None:
            kept.frame.unpersist()
        self._kept[operator] = Anchor(frame, tasks, executors)
        return frame

    def release(self) -> None:
        """Let the cached blocks go."""
        for anchor in self._kept.values():
            anchor.frame.unpersist()
        self._kept.clear()


def _placed(session: SparkSession, places: list[str]) -> DataFrame:
    """One row per task in a partition of its own that prefers the task's executor."""
    context: Any = session.sparkContext
    jvm = context._jvm
    pairs = jvm.java.util.ArrayList()
    for task, place in enumerate(places):
        where = jvm.java.util.ArrayList()
        where.add(place)
        values = context._gateway.new_array(jvm.java.lang.Object, 1)
        values[0] = task
        row = jvm.org.apache.spark.sql.RowFactory.create(values)
        pairs.add(jvm.scala.Tuple2(row, jvm.PythonUtils.toSeq(where)))
    kind = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("org.apache.spark.sql.Row"))
    blocks = context._jsc.sc().makeRDD(jvm.PythonUtils.toSeq(pairs), kind)
    schema = session._jsparkSession.parseDataType(StructType().add(TASK, "integer", False).json())
    return DataFrame(session._jsparkSession.createDataFrame(blocks, schema), session)
