"""A topic with the rows of our producer as a stream of columns, as `tidegate.arrivals` gives them.

`timestamp` is the record's, to the millisecond: the arrival of the row.
"""

from pyspark.sql import DataFrame, SparkSession

_VALUE = "key long, value double, seq long"


def topic_rows(session: SparkSession, servers: str, topic: str, **options: str) -> DataFrame:
    """A streaming DataFrame of all rows of a topic (columns: key, value, seq, timestamp).

    `options` are those of Spark's Kafka source, for instance `maxOffsetsPerTrigger="1000"`.
    """
    source = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingOffsets": "earliest"}
    return _columns(session.readStream.format("kafka").options(**source | options).load())


def topic_table(session: SparkSession, servers: str, topic: str, ends: str = "latest") -> DataFrame:
    """All rows that a topic has now, or up to `ends` (JSON of offsets), as a batch."""
    source = {"kafka.bootstrap.servers": servers, "subscribe": topic, "endingOffsets": ends}
    return _columns(session.read.format("kafka").options(**source).load())


def _columns(records: DataFrame) -> DataFrame:
    parsed = f"from_json(CAST(value AS STRING), '{_VALUE}') AS row"
    return records.selectExpr(parsed, "timestamp").selectExpr("row.*", "timestamp")
