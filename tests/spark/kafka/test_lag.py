"""The lag of plain queries that read a real broker behind a read limit."""

import json
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import tidegate as tg
from tests.spark.conftest import WaitFor
from tidegate.control.record import Record
from tidegate.spark.kafka.broker import Broker
from tidegate.spark.kafka.producer import ProducerProcess
from tidegate.spark.kafka.stream_sources import query_sources
from tidegate.spark.kafka.topic_load import TopicLoad

LIMIT = 250
EVERY = "500 milliseconds"
"""At most 500 rows a second are read, however fast the machine is, and 1,200 arrive."""
LOAD = TopicLoad.of("constant:1200", "zipf:60,0.8", seconds=4.0, seed=2)


def test_lag_and_rate_of_an_attached_query_behind_a_read_limit(
    kafka_spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, wait_for: WaitFor
) -> None:
    """Batches take 250 rows each. Their rate says nothing, but the offsets say what arrives."""
    query = (
        kafka_spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", broker.servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", LIMIT)
        .option("minPartitions", 6)
        .load()
        .selectExpr("CAST(key AS STRING) AS key")
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "spark"))
        .trigger(processingTime=EVERY)
        .start()
    )
    attachment = tg.attach(query, target="2 seconds", records=tmp_path / "records")
    try:
        with ProducerProcess(broker.servers, topic, LOAD) as producer:
            done = producer.wait(120)
        wait_for(lambda: _rows_read(attachment.records) >= done.rows, query)
        peak = _peak_rate(query, topic)
        (source,) = query_sources(query)
    finally:
        attachment.stop()
        query.stop()
    assert (source.servers, source.topics) == (broker.servers, (topic,)), "whose broker is watched"
    lags = [one for one in (r.measurement.segments[0].lag for r in _measured(attachment)) if one]
    most = max(lags, key=lambda lag: lag.rows)
    assert most.rows > LIMIT, "rows stayed behind the limit"
    assert sum(one.behind_rows for one in most.partitions) == most.rows
    assert {one.topic for one in most.partitions} == {topic}
    assert len(most.partitions) > 1
    assert (most.limit_rows, most.min_partitions, most.readers) == (LIMIT, 6, 6)
    assert lags[-1].rows == 0
    taken = sum(one.taken_rows for lag in lags for one in lag.partitions)
    arrived = sum(one.arrived_rows for lag in lags for one in lag.partitions)
    assert done.rows - LIMIT <= taken <= done.rows, "all but the first batch, which has no start"
    assert arrived <= done.rows
    rates = [r.measurement.arrival_rate for r in _measured(attachment)]
    assert 0.3 * peak <= max(rates) <= 1.1 * peak, "by what arrived, not by what batches took"
    kept = [Record.from_json(record.to_json()) for record in attachment.records]
    assert kept[-1].measurement == attachment.records[-1].measurement


def _peak_rate(query: StreamingQuery, topic: str) -> float:
    """The most rows per second by which the topic grew between the plans of two batches."""
    grown = [
        (datetime.fromisoformat(told["timestamp"]), sum(source["latestOffset"][topic].values()))
        for told in (json.loads(one.json) for one in query.recentProgress)
        for source in told["sources"]
        if told["numInputRows"]
    ]
    return max(
        (rows - before) / (at - since).total_seconds()
        for (since, before), (at, rows) in pairwise(grown)
    )


def _measured(attachment: tg.Attachment) -> list[Record]:
    return [record for record in attachment.records if record.measurement.segments]


def _rows_read(records) -> int:
    return sum(
        batch.rows
        for record in list(records)
        for segment in record.measurement.segments
        for batch in segment.batches
    )
