"""Notices of a pipeline and of attached queries on real Spark reach a webhook and a function."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tests.helpers.hook_server import hook_server
from tidegate.errors import AskedWrongly
from tidegate.recording import read_records
from tidegate.spark.loop.loop import ControlLoop


def flow_of(spark: SparkSession) -> Any:
    stream = tg.arrivals(spark, "constant:50", keys="zipf:100,0.8", partitions=2)
    return tg.pipeline("told", stream, arrival="timestamp").keyed(
        "count", tg.count(), key="key", shards=16
    )


def test_a_webhook_is_told_of_a_pipeline(
    spark: SparkSession, tmp_path: Path, wait_for: Any
) -> None:
    checkpoint = tmp_path / "ck"
    with hook_server() as hook:
        run = flow_of(spark).start(
            str(checkpoint), target="30 seconds", cores=(1, 2), tick="200 ms", notify=hook.url
        )
        try:
            assert isinstance(run.loop, ControlLoop)
            run.shed(0.5)
            wait_for(lambda: hook.posts, run.queries["main"])
        finally:
            run.stop()
        told = [(post["pipeline"], post["kind"], post["state"]) for post in hook.posts]
        assert told == [("told", "shedding", "began"), ("told", "shedding", "ended")]
    notices = [one for record in read_records(checkpoint) for one in record.notices]
    assert [(one.kind, one.ended) for one in notices] == [("shedding", False)]
    assert "SECRET" not in "".join(path.read_text() for path in checkpoint.glob("*.jsonl"))


def test_a_function_is_told_of_attached_queries(
    spark: SparkSession, tmp_path: Path, wait_for: Any
) -> None:
    query = (
        tg.arrivals(spark, "constant:50", partitions=2)
        .writeStream.queryName("theirs")
        .format("noop")
        .option("checkpointLocation", str(tmp_path / "theirs"))
        .start()
    )
    told: list[tg.Notice] = []
    try:
        with tg.attach(query, target="1 ms", tick="200 ms", notify_after="1 ms") as attachment:
            attachment.update(notify=told.append)
            wait_for(lambda: told, query)
    finally:
        query.stop()
    assert [(one.kind, one.ended) for one in told] == [
        ("target_missed", False),
        ("target_missed", True),
    ]
    assert told[0].figures["target_s"] == 0.001


def test_a_wrong_receiver_is_refused_before_anything_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    for wrong in ("slack", "ftp://hooks.example.com/a"):
        with pytest.raises(AskedWrongly, match="notify"):
            flow_of(spark).start(str(tmp_path / "ck"), target="30 seconds", notify=wrong)
        with pytest.raises(AskedWrongly, match="notify"):
            tg.attach(spark, target="30 seconds", notify=wrong)
    assert not (tmp_path / "ck").exists()
    with pytest.raises(AskedWrongly, match="notify says how to keep a target"):
        flow_of(spark).start(str(tmp_path / "ck"), notify="https://hooks.example.com/a")
