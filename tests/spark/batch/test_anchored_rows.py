"""Rows beside their anchor: one partition for each task, with rows or without, and no exchange."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidegate.spark.batch.anchors import ALONE, UnplacedAnchors, beside
from tidegate.spark.batch.worker import TASK


def told(anchor: pa.Table, rows: pa.Table) -> pa.Table:
    """The task, and how many rows it was given."""
    return pa.table({"task": [anchor.column(0)[0].as_py()], "rows": [rows.num_rows]})


@pytest.mark.parametrize("tasks", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 60])
def test_every_task_has_one_partition_with_its_rows(
    spark: SparkSession, tasks: int, count: int
) -> None:
    anchors = UnplacedAnchors(spark)
    try:
        numbers = spark.range(60).where(F.col("id") < count)
        numbered = numbers.selectExpr("id", f"cast(id % {tasks} as int) as {TASK}")
        rows = numbered.repartitionById(tasks, F.col(TASK))
        both = beside(anchors.of("count", tasks, ALONE), rows, tasks)
        found = both.applyInArrow(told, "task long, rows long")
        expected = {(task, count // tasks) for task in range(tasks)}
        assert {(row.task, row.rows) for row in found.collect()} == expected
        plan = str(found._jdf.queryExecution().executedPlan())
        final, _, first = plan.partition("Initial Plan")
        assert "Exchange" in final and "ENSURE_REQUIREMENTS" not in final, "dealt out a second time"
        # Of several tasks, Spark finds out while it runs that this is not needed.
        assert tasks > 1 or "hashpartitioning" not in first
    finally:
        anchors.release()
