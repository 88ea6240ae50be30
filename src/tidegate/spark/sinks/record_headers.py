"""The headers by which a record of a topic is recognised when it is written again.

Kafka appends, so a replayed batch appends its records a second time. Both carry the same headers,
because a replay repeats the first try: the same rows, in the same tasks, in the same order. The
digest of the content is there for a source that breaks this promise. Two different rows are then
never taken for one, so none is lost; some may be there twice.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.spark.sinks.attempt import Attempt

PREFIX = "tidegate-"
SINK, BATCH, ROW, DIGEST = (f"{PREFIX}{name}" for name in ("sink", "batch", "row", "digest"))
"""What a record carries: pipeline, sink and query; the batch; the row's number in it, made of the
number of the task and the row's position in the task; a digest of the record."""
TYPE = "array<struct<key:string,value:binary>>"
"""Spark's type for headers."""


def headers(attempt: Attempt, content: Column, given: Column | None) -> Column:
    """The headers of a record: those that the user gives it, and ours.

    Records that were read from another topic may carry headers of another sink; these go.
    """
    ours = F.array(
        _header(SINK, F.lit(f"{attempt.pipeline}/{attempt.sink}/{attempt.mark}")),
        _header(BATCH, F.lit(str(attempt.batch_id))),
        _header(ROW, F.monotonically_increasing_id().cast("string")),
        _header(DIGEST, F.hex(content)),
    ).cast(TYPE)
    if given is None:
        return ours
    theirs = F.filter(given, lambda one: ~_is_ours(one))
    return F.concat(F.coalesce(theirs, F.array().cast(TYPE)), ours)


def identity(given: Column, otherwise: Column) -> Column:
    """What is equal for two records if one is the other one written again."""
    ours = F.transform(F.filter(given, _is_ours), lambda one: one["value"].cast("string"))
    return F.when(F.size(ours) > 0, F.array_join(ours, "/")).otherwise(otherwise)


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("binary").alias("value"))


def _is_ours(one: Column) -> Column:
    return one["key"].startswith(PREFIX)
