"""The environment in which a program starts its JVM."""

import os
import shlex
from pathlib import Path

import pytest

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.program.launch import SUBMIT_ARGUMENTS, prepare_launch, submit_arguments
from tidegate.spark.program.settings import ProgramSettings, settle

NAMES = ("PYSPARK_GATEWAY_PORT", SUBMIT_ARGUMENTS, "SPARK_LOCAL_IP", "SPARK_WORKER_DIR")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    for name in (*NAMES, "SPARK_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE_ENABLED"):
        os.environ.pop(name, None)
    monkeypatch.setattr("tidegate.spark.program.launch.use_java", lambda directory: None)


def settings(tmp_path: Path, **given: object) -> ProgramSettings:
    (tmp_path / "job.py").write_text("")
    return settle(tmp_path / "job.py", (), {"target": "5s", **given})


def test_nothing_is_set_for_a_program_that_is_run_as_it_is(tmp_path: Path) -> None:
    prepare_launch(settings(tmp_path), tmp_path)
    assert not set(NAMES) & set(os.environ)


def test_master_and_settings_go_to_pysparks_own_arguments(tmp_path: Path) -> None:
    conf = ["spark.app.name=two words"]
    prepare_launch(settings(tmp_path, master="local-cluster[2,1,1024]", conf=conf), tmp_path)
    assert shlex.split(os.environ[SUBMIT_ARGUMENTS]) == [
        *("--master", "local-cluster[2,1,1024]"),
        *("--conf", "spark.app.name=two words", "pyspark-shell"),
    ]
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert os.environ["SPARK_WORKER_DIR"] == str(tmp_path / "workers")


def test_a_cluster_elsewhere_gets_no_addresses_of_this_machine(tmp_path: Path) -> None:
    prepare_launch(settings(tmp_path, master="yarn"), tmp_path)
    assert shlex.split(os.environ[SUBMIT_ARGUMENTS]) == ["--master", "yarn", "pyspark-shell"]
    assert "SPARK_LOCAL_IP" not in os.environ and "SPARK_WORKER_DIR" not in os.environ


@pytest.mark.parametrize("before", ["--jars a.jar pyspark-shell", "--jars a.jar"])
def test_arguments_of_the_environment_are_kept(before: str) -> None:
    words = shlex.split(submit_arguments(before, "yarn", {}))
    assert words[:4] == ["--jars", "a.jar", "--master", "yarn"]


def test_a_master_that_does_not_answer_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match=r"no Spark master answers at 127.0.0.1:1;"):
        prepare_launch(settings(tmp_path, master="spark://127.0.0.1:1"), tmp_path)


@pytest.mark.parametrize("given", [{"master": "yarn"}, {"conf": ["spark.x=1"]}])
def test_under_spark_submit_the_master_is_spark_submits(tmp_path: Path, given: dict) -> None:
    os.environ["PYSPARK_GATEWAY_PORT"] = "1"
    with pytest.raises(AskedWrongly, match="give --master and --conf to spark-submit"):
        prepare_launch(settings(tmp_path, **given), tmp_path)
    prepare_launch(settings(tmp_path), tmp_path)


@pytest.mark.parametrize("variable", [("SPARK_REMOTE", "sc://host"), ("SPARK_API_MODE", "connect")])
def test_spark_connect_is_refused_before_the_program(tmp_path: Path, variable) -> None:
    os.environ[variable[0]] = variable[1]
    with pytest.raises(AskedWrongly, match=r"Spark Connect is set.* unset it"):
        prepare_launch(settings(tmp_path), tmp_path)
