"""What is decided about a session before Spark starts."""

import os
import socket
from pathlib import Path

import pytest

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.master import parse_master, require_answer
from tidegate.spark.session import session, settings


@pytest.mark.parametrize(
    ("text", "cores", "here"),
    [
        ("local", 1, True),
        ("local[4]", 4, True),
        ("local[*]", os.cpu_count(), True),
        ("local[4,2]", 4, True),
        ("local-cluster[3,2,1024]", 6, True),
        ("spark://127.0.0.1:7077", None, True),
        ("spark://one:7077,two:7077", None, False),
        ("spark://localhost:7077,two:7077", None, False),
        ("yarn", None, False),
        ("k8s://https://host:6443", None, False),
    ],
)
def test_masters(text: str, cores: int | None, here: bool) -> None:
    master = parse_master(text)
    assert (master.cores, master.on_this_machine) == (cores, here)
    assert master.in_one_process == (text.startswith("local") and "cluster" not in text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "locl",
        "local[0]",
        "local[-1]",
        "local[]",
        "local[2] ",
        "local-cluster[2,1]",
        "local-cluster[0,1,1]",
        "spark://",
        "spark://host",
        "mesos://host:5050",
        "yarn-client",
    ],
)
def test_an_unknown_master_is_one_sentence_with_examples(text: str) -> None:
    with pytest.raises(AskedWrongly, match=r"local\[4\]") as caught:
        session(text)
    assert "\n" not in str(caught.value)


def test_loopback_and_directories_when_local(tmp_path: Path) -> None:
    conf = settings(parse_master("local[3]"), tmp_path)
    assert conf["spark.driver.host"] == conf["spark.driver.bindAddress"] == "127.0.0.1"
    assert conf["spark.local.dir"].startswith(str(tmp_path))
    assert conf["spark.sql.warehouse.dir"].startswith(str(tmp_path))
    assert conf["spark.sql.shuffle.partitions"] == "3"
    assert conf["spark.scheduler.mode"] == "FAIR"


def test_workers_on_this_machine_import_what_the_driver_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    conf = settings(parse_master("local-cluster[2,1,1024]"), tmp_path)
    roots = [Path(root) for root in conf["spark.executorEnv.PYTHONPATH"].split(os.pathsep)]
    assert (roots[0] / "tidegate" / "__init__.py").is_file()
    assert tmp_path in roots
    assert not any("site-packages" in root.parts for root in roots)


def test_only_executors_that_fill_this_machine_do_without_an_optimising_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    option = "spark.executor.extraJavaOptions"
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    for master in ("local-cluster[4,2,1024]", "local-cluster[5,2,1024]"):
        assert "TieredStopAtLevel=1" in settings(parse_master(master), tmp_path)[option]
    for master in ("local-cluster[3,2,1024]", "local[8]", "spark://127.0.0.1:7077", "yarn"):
        assert option not in settings(parse_master(master), tmp_path)


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "yarn"])
def test_no_batch_waits_for_seconds_for_an_executor_that_comes_or_goes(
    master: str, tmp_path: Path
) -> None:
    assert settings(parse_master(master), tmp_path)["spark.locality.wait"] == "500ms"


def test_a_real_cluster_keeps_its_own_network(tmp_path: Path) -> None:
    conf = settings(parse_master("yarn"), tmp_path)
    assert "spark.driver.host" not in conf and "spark.local.dir" not in conf
    assert conf["spark.scheduler.mode"] == "FAIR"


def test_a_standalone_master_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        require_answer(parse_master(f"spark://127.0.0.1:{port}"))
    with pytest.raises(TidegateError, match="no Spark master answers"):
        require_answer(parse_master(f"spark://127.0.0.1:{port}"))


def test_spark_connect_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AskedWrongly, match="'sc://host' is a Spark Connect server"):
        parse_master("sc://host")
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    with pytest.raises(AskedWrongly, match="this process uses Spark Connect"):
        session()


@pytest.mark.parametrize("master", ["yarn", "k8s://https://host:443"])
def test_executors_that_failed_long_ago_do_not_end_a_query(master: str, tmp_path) -> None:
    conf = settings(parse_master(master), tmp_path)
    assert conf["spark.executor.failuresValidityInterval"] == "1h"
    elsewhere = settings(parse_master("spark://host:7077"), tmp_path)
    assert "spark.executor.failuresValidityInterval" not in elsewhere
