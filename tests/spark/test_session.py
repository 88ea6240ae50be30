"""A real session: where it runs, what its workers can import, and what it leaves behind."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

from tests.helpers.places import ROOT, SOURCE
from tidegate.errors import AskedWrongly
from tidegate.spark.session import session


def test_the_session_is_ours(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert spark.sparkContext.master == "local[4]"
    assert conf.get("spark.driver.host") == "127.0.0.1"
    assert conf.get("spark.scheduler.mode") == "FAIR"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.uiWebUrl is None


def test_workers_have_this_interpreter_and_this_package(spark: SparkSession) -> None:
    def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        import tidegate

        for _ in batches:
            rows = {"python": [sys.executable], "package": [tidegate.__file__]}
            yield pa.RecordBatch.from_pydict(rows)

    import tidegate

    answers = spark.range(2).mapInArrow(where, "python string, package string").collect()
    assert {answer.python for answer in answers} == {sys.executable}
    assert {answer.package for answer in answers} == {tidegate.__file__}


def test_a_second_ask_gives_the_same_session(spark: SparkSession) -> None:
    assert session() is spark
    assert session("local[4]") is spark
    with pytest.raises(AskedWrongly, match="is running"):
        session("local[2]")


def test_nothing_is_written_where_we_stand(spark: SparkSession) -> None:
    here = ROOT
    warehouse = spark.conf.get("spark.sql.warehouse.dir")
    assert warehouse is not None
    assert not Path(urlsplit(warehouse).path).is_relative_to(here)
    assert not (here / "spark-warehouse").exists() and not (here / "metastore_db").exists()


SUBMITTED = """
import json
from tidegate.errors import AskedWrongly
from tidegate.spark.session import session

try:
    session("local[2]")
except AskedWrongly as error:
    refused = str(error)
spark = session()
conf = spark.sparkContext.getConf()
names = ["spark.master", "spark.app.name", "spark.scheduler.mode", "spark.sql.session.timeZone"]
print(json.dumps({name: conf.get(name) for name in names} | {"refused": refused}))
"""


def test_what_spark_submit_gave_stands(spark: SparkSession, tmp_path: Path) -> None:
    """The session of this process goes before: it has found the Java that spark-submit needs."""
    script = tmp_path / "script.py"
    script.write_text(SUBMITTED)
    home = Path(pyspark.__file__).parent
    kept = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    environment = kept | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(SOURCE),
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local[3]", "--name", "submitted"]
    command += ["--conf", "spark.ui.enabled=false"]
    command += ["--conf", "spark.sql.session.timeZone=Europe/Oslo", str(script)]
    run = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300
    )
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout.splitlines()[-1])
    assert answer["spark.master"] == "local[3]" and answer["spark.app.name"] == "submitted"
    assert answer["spark.sql.session.timeZone"] == "Europe/Oslo"
    assert answer["spark.scheduler.mode"] == "FAIR"
    assert "spark-submit chose master 'local[3]'" in answer["refused"]
