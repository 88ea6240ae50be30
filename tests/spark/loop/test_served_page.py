"""A page of a pipeline and of attached queries on real Spark: it shows them, and harms nothing."""

import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

import tidegate as tg
from tests.helpers.browser import opened, running_browser
from tidegate.errors import AskedWrongly
from tidegate.spark.loop.loop import ControlLoop


def flow_of(spark: SparkSession) -> Any:
    stream = tg.arrivals(spark, "constant:50", keys="zipf:100,0.8", partitions=2)
    return tg.pipeline("shown", stream, arrival="timestamp").keyed(
        "count", tg.count(), key="key", shards=16
    )


def metrics(url: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{url}metrics", timeout=60) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {sample.name: sample.value for family in families for sample in family.samples}


def test_a_pipeline_is_shown_in_a_browser_and_measured_by_prometheus(
    spark: SparkSession, tmp_path: Path, wait_for: Any
) -> None:
    run = flow_of(spark).start(
        str(tmp_path / "ck"), target="30 seconds", cores=(1, 2), tick="200 ms", page=0
    )
    try:
        loop = run.loop
        assert isinstance(loop, ControlLoop) and run.page is not None
        wait_for(
            lambda: any(one.measurement.latency for one in list(loop.records)),
            run.queries["main"],
        )
        found = metrics(run.page)
        assert found["tidegate_target_seconds"] == 30.0
        assert found["tidegate_rows_total"] > 0 and found["tidegate_control_up"] == 1.0
        with running_browser() as browser, opened(browser, run.page) as tab:
            assert "On target" in tab.text("state")
            assert "count" in tab.text("tasks")
            assert tab.errors == []
    finally:
        run.stop()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(run.page, timeout=20)
    assert loop.failure is None and loop.control_failure is None


def test_a_port_in_use_is_refused_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(AskedWrongly, match=f"127.0.0.1:{port} cannot be listened on"):
            flow_of(spark).start(str(tmp_path / "ck"), target="30 seconds", page=port)
        with pytest.raises(AskedWrongly, match=f"127.0.0.1:{port} cannot be listened on"):
            tg.attach(spark, target="30 seconds", page=port)
    assert not (tmp_path / "ck").exists()
    assert not spark.streams.active


def test_a_page_needs_a_target(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AskedWrongly, match="page says how to keep a target"):
        flow_of(spark).start(str(tmp_path / "ck"), page=0)


def test_attached_queries_are_shown(spark: SparkSession, tmp_path: Path, wait_for: Any) -> None:
    query = (
        tg.arrivals(spark, "constant:50", partitions=2)
        .writeStream.queryName("theirs")
        .format("noop")
        .option("checkpointLocation", str(tmp_path / "theirs"))
        .start()
    )
    try:
        with tg.attach(query, target="30 seconds", tick="200 ms", page=0) as attachment:
            assert attachment.page is not None
            wait_for(lambda: any(one.measurement.latency for one in attachment.records), query)
            found = metrics(attachment.page)
        assert found["tidegate_target_seconds"] == 30.0
        assert found["tidegate_rows_total"] > 0
    finally:
        query.stop()
