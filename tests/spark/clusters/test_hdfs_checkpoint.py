"""A pipeline in one process whose checkpoint is on HDFS: state, a channel and Spark's own logs."""

import uuid
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.feed import Feed
from tidegate.errors import TidegateError
from tidegate.spark.clusters.hdfs import Hdfs
from tidegate.spark.hdfs import web
from tidegate.spark.hdfs.patience import Patiences
from tidegate.spark.hdfs.session import known_to
from tidegate.spark.ports import free_ports
from tidegate.spark.state.files import Durable

pytestmark = pytest.mark.experiment


def flow(spark, feed: Feed):
    return (
        tg.pipeline("hdfs", feed.stream(spark))
        .map(lambda table: table, schema="k long", name="same")
        .cut("rows")
        .keyed("counts", tg.count(), key="k", shards=8)
    )


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    made = Feed(tmp_path / "in", "k long")
    chance = np.random.default_rng(7)
    for _ in range(3):
        made.add(pa.table({"k": chance.integers(0, 20, 200)}))
    return made


def test_a_restart_goes_on_from_hdfs(spark, hdfs: Hdfs, feed: Feed) -> None:
    url = f"{hdfs.url}/pipelines/{uuid.uuid4().hex[:8]}?web={hdfs.web}"
    for _ in range(2):
        run = flow(spark, feed).start(url, tasks=2)
        run.processAllAvailable()
        run.stop()
        feed.add(pa.table({"k": np.arange(20)}))
    expected = np.bincount(pa.concat_tables(feed.batches[:4])["k"].to_numpy(), minlength=20)
    state = tg.read_state(url, "counts").to_pylist()
    assert {row["k"]: row["count"] for row in state} == dict(enumerate(expected.tolist()))
    place = Durable(url)
    assert set(place.directories()) >= {"channels", "owner", "segments", "state"}
    logs = place.below("segments").below("main").below("spark")
    assert len(logs.below("commits").names()) == 4, "Spark's own logs are there as well"


def test_tasks_learn_the_user_and_the_web_server_from_the_session(spark, hdfs: Hdfs) -> None:
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    for name, value in hdfs.settings().items():
        if name != "fs.defaultFS":
            configuration.set(name, str(value))
    try:
        told = known_to(spark, f"{hdfs.url}/ck")
        user = spark.sparkContext.sparkUser()
        # The setting is about the default filesystem, which is another one here.
        assert told == f"{hdfs.url}/ck?user={user}&web=http://127.0.0.1:9870"
        configuration.set("fs.defaultFS", hdfs.url)
        assert known_to(spark, f"{hdfs.url}/ck") == f"{hdfs.url}/ck?user={user}&web={hdfs.web}"
        assert known_to(spark, "/local/ck") == "/local/ck"
    finally:
        for name in hdfs.settings():
            configuration.unset(name)


def test_a_start_without_a_namenode_is_refused_in_one_sentence(
    spark, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "PATIENCES", Patiences(first_s=0.0))
    rpc, page = free_ports(2)
    url = f"hdfs://127.0.0.1:{rpc}/ck"
    with pytest.raises(TidegateError, match=f"no NameNode answers .* at http://127.0.0.1:{page}"):
        flow(spark, feed).start(f"{url}?web=http://127.0.0.1:{page}", tasks=2)
    assert not spark.streams.active


def test_a_start_in_a_directory_of_others_is_refused_in_one_sentence(
    spark, hdfs: Hdfs, feed: Feed
) -> None:
    place = Durable(f"{hdfs.url}/private-{uuid.uuid4().hex[:8]}?web={hdfs.web}")
    place.make()
    with pytest.raises(TidegateError, match=r"refuses .* to the user 'stranger'"):
        flow(spark, feed).start(f"{place.location}/ck?user=stranger&web={hdfs.web}", tasks=2)
    assert place.directories() == []
