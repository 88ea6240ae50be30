"""Writes a batch to a Kafka topic, with headers by which a reader drops what a replay repeats."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidegate.errors import AskedWrongly
from tidegate.pipelines.schema import require_columns
from tidegate.spark.kafka.answering import require_broker
from tidegate.spark.sinks.attempt import Attempt
from tidegate.spark.sinks.record_headers import TYPE, headers

RECORD = ("key", "value", "headers", "topic", "partition")
"""The columns of a record, as Spark's Kafka connector names them."""
_SERVERS, _PROTOCOL = "kafka.bootstrap.servers", "kafka.security.protocol"
_FIXED = {"kafka.enable.idempotence": "true", "kafka.acks": "all"}
"""Without these a producer may itself repeat or lose records."""


@dataclass(frozen=True, slots=True)
class TopicSink:
    """Where records go, and how rows become records."""

    servers: str
    topic: str | None
    """None: each row names its own."""
    key: str | None
    """The column that becomes the record's key, of rows that are not records themselves."""
    records: bool
    """Whether the rows are records: their columns are those of `RECORD`."""
    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, name: str, schema: pa.Schema, options: Mapping[str, str]) -> "TopicSink":
        """From what was given to `.to("kafka", ...)`; raises if something is missing or wrong."""
        what, rest = f"sink '{name}'", dict(options)
        topic, key = rest.pop("topic", None), rest.pop("key", None)
        servers = {rest.pop(option) for option in ("servers", _SERVERS) if option in rest}
        if len(servers) != 1:
            said = "two different addresses" if servers else "no address"
            raise AskedWrongly(
                f"{what}: {said} of a Kafka broker; give one, as in "
                f".to('kafka', topic='{topic or 'counts'}', servers='localhost:9092')"
            )
        for option, fixed in _FIXED.items():
            if rest.pop(option, fixed) not in (fixed, "-1" if fixed == "all" else fixed):
                raise AskedWrongly(
                    f"{what}: {option}={options[option]!r} would let the producer repeat or lose "
                    f"records; leave it out ({fixed!r} is set)"
                )
        records = _are_records(schema)
        if records:
            _check_record(schema, what, key)
        elif key is not None:
            require_columns((key,), schema, f"{what}: key")
        if topic is None and not (records and "topic" in schema.names):
            raise AskedWrongly(
                f"{what}: no topic; give one, as in .to('kafka', topic='counts', servers=...)"
            )
        return cls(servers.pop(), topic, key, records, tuple(sorted(rest.items())))

    def check(self) -> None:
        """Raise if no broker answers. One that wants encryption cannot be asked like this."""
        if dict(self.options).get(_PROTOCOL, "PLAINTEXT").upper() == "PLAINTEXT":
            require_broker(self.servers)

    def write(self, frame: DataFrame, attempt: Attempt) -> None:
        """Append a batch to the topic; a record that was there before has the same headers."""
        writer = self.as_records(frame, attempt).write.format("kafka").options(**dict(self.options))
        writer = writer.options(**_FIXED).option(_SERVERS, self.servers)
        if self.topic is not None:
            writer = writer.option("topic", self.topic)
        writer.save()

    def as_records(self, frame: DataFrame, attempt: Attempt) -> DataFrame:
        """The rows as records. Their order stays as it is: the headers count by it."""
        if self.records:
            found = {name: F.col(name) for name in frame.columns}
        else:
            # Without the option, a column that is null would be left out.
            row = F.struct(*(F.col(f"`{name}`") for name in frame.columns))
            found = {"value": F.to_json(row, {"ignoreNullFields": "false"})}
            if self.key is not None:
                found["key"] = F.col(f"`{self.key}`").cast("string")
        given = found.pop("headers", None)
        columns = [column.alias(name) for name, column in found.items()]
        digested = [*found.values(), *([] if given is None else [given])]
        return frame.select(
            *columns, headers(attempt, F.xxhash64(*digested), given).alias("headers")
        )


def _are_records(schema: pa.Schema) -> bool:
    """Whether the columns are those of records; rows with others are written as JSON."""
    return set(schema.names) <= set(RECORD) and "value" in schema.names and _text(schema, "value")


def _text(schema: pa.Schema, name: str) -> bool:
    kind = schema.field(name).type
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _check_record(schema: pa.Schema, what: str, key: str | None) -> None:
    """Refuse columns of other types than Spark's connector takes: it would, in the first batch."""
    if key is not None:
        raise AskedWrongly(
            f"{what}: key='{key}', but the rows are records with columns of their own for key and "
            "value; leave key out, and call the column with the record's key 'key'"
        )
    if "key" in schema.names and not _text(schema, "key"):
        raise AskedWrongly(
            f"{what}: the column 'key' of the records is {schema.field('key').type}; expected a "
            "string or binary column, so cast it in an operator before"
        )
    if "topic" in schema.names and not pa.types.is_string(schema.field("topic").type):
        raise AskedWrongly(f"{what}: the column 'topic' is no string column; cast it before")
    if "partition" in schema.names and not pa.types.is_int32(schema.field("partition").type):
        raise AskedWrongly(f"{what}: the column 'partition' is no int column; cast it before")
    if "headers" in schema.names and not pa.types.is_list(schema.field("headers").type):
        raise AskedWrongly(f"{what}: the column 'headers' is not of Spark's type {TYPE}")
