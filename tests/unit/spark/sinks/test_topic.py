"""What `.to("kafka", ...)` takes, and what it refuses before anything runs."""

import pyarrow as pa
import pytest

from tidegate.errors import AskedWrongly
from tidegate.spark.sinks.topic import TopicSink

COUNTS = pa.schema({"ad": pa.string(), "count": pa.int64()})
RECORDS = pa.schema({"key": pa.binary(), "value": pa.string(), "partition": pa.int32()})
GIVEN = {"topic": "counts", "servers": "localhost:9092"}


def test_rows_become_json_and_records_stay_records():
    counts = TopicSink.of("out", COUNTS, {**GIVEN, "key": "ad", "kafka.linger.ms": "5"})
    assert counts == TopicSink("localhost:9092", "counts", "ad", False, (("kafka.linger.ms", "5"),))
    assert TopicSink.of("out", RECORDS, GIVEN).records
    numbers = pa.schema({"key": pa.int64(), "value": pa.int64()})
    assert not TopicSink.of("out", numbers, {**GIVEN, "key": "key"}).records
    own = pa.schema({"topic": pa.string(), "value": pa.binary()})
    assert TopicSink.of("out", own, {"servers": "b:1"}).topic is None


def test_sparks_own_names_and_settings_that_change_nothing_are_taken():
    given = {"topic": "counts", "kafka.bootstrap.servers": "b:1", "kafka.acks": "-1"}
    sink = TopicSink.of("out", COUNTS, {**given, "kafka.enable.idempotence": "true"})
    assert (sink.servers, sink.options) == ("b:1", ())


@pytest.mark.parametrize(
    ("schema", "options", "said"),
    [
        (COUNTS, {"topic": "t"}, "sink 'out': no address of a Kafka broker; give one, as in .to"),
        (COUNTS, {**GIVEN, "kafka.bootstrap.servers": "other:1"}, "two different addresses"),
        (COUNTS, {"servers": "b:1"}, r"no topic; give one, as in .to\('kafka', topic='counts'"),
        (COUNTS, {**GIVEN, "key": "a"}, "sink 'out': key: there is no column 'a'; "),
        (COUNTS, {**GIVEN, "kafka.acks": "1"}, "kafka.acks='1' would let the producer repeat or"),
        (COUNTS, {**GIVEN, "kafka.enable.idempotence": "false"}, "leave it out"),
        (RECORDS, {**GIVEN, "key": "key"}, "key='key', but the rows are records"),
        (
            pa.schema({"key": pa.int64(), "value": pa.string()}),
            GIVEN,
            "the column 'key' of the records is int64; expected a string or binary column",
        ),
        (
            pa.schema({"partition": pa.int64(), "value": pa.string()}),
            GIVEN,
            "the column 'partition' is no int column",
        ),
        (pa.schema({"topic": pa.int64(), "value": pa.string()}), GIVEN, "'topic' is no string"),
        (pa.schema({"headers": pa.int64(), "value": pa.string()}), GIVEN, "'headers' is not of"),
    ],
)
def test_what_is_missing_or_contradicts_is_refused(schema, options, said):
    with pytest.raises(AskedWrongly, match=said):
        TopicSink.of("out", schema, options)
