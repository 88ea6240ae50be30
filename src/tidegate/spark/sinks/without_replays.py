"""Reads what a pipeline wrote to a topic: every record once, though a replay repeated some."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.errors import AskedWrongly
from tidegate.spark.sinks.record_headers import identity
from tidegate.units import parse_duration

_IDENTITY, _READ_AT = "__tidegate_identity", "__tidegate_read_at"
_NEEDED = ("headers", "topic", "partition", "offset")


def without_replays(frame: "DataFrame", within: str | None = None) -> "DataFrame":
    """Each record once, of a topic that `.to("kafka", ...)` wrote.

    `frame` is what `format("kafka")` loads with `option("includeHeaders", "true")`, from
    `spark.read` or `spark.readStream`; columns and other rows stay as they are. Records that no
    pipeline of Tidegate wrote are passed on.

    A stream has to remember what it has seen, in Spark's state. `within` says for how long: at
    least as long as a pipeline that writes the topic may be down between a crash and its restart.
    """
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        raise AskedWrongly(
            f"without_replays: the DataFrame has no column {' and '.join(missing)}; give it as "
            "spark.read or readStream.format('kafka').option('includeHeaders', 'true').load() "
            "returns it, and select columns afterwards"
        )
    place = F.concat_ws("/", "topic", "partition", "offset")
    known = frame.withColumn(_IDENTITY, identity(F.col("headers"), place))
    if not frame.isStreaming:
        return known.dropDuplicates([_IDENTITY]).drop(_IDENTITY)
    if within is None:
        raise AskedWrongly(
            "without_replays: say for how long a stream remembers the records that it has seen, as "
            "in within='1 hour': longer than the writer may be down between a crash and a restart"
        )
    seconds = parse_duration(within)
    # By the time of reading, so that no record is ever late: Spark would drop it.
    seen = known.withColumn(_READ_AT, F.current_timestamp())
    seen = seen.withWatermark(_READ_AT, f"{round(seconds * 1e3)} milliseconds")
    return seen.dropDuplicatesWithinWatermark([_IDENTITY]).drop(_IDENTITY, _READ_AT)
