"""A real session: where it runs, what its workers can import, and what it leaves behind."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

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
    here = Path(__file__).resolve().parents[2]
    warehouse = spark.conf.get("spark.sql.warehouse.dir")
    assert warehouse is not None and str(here) not in warehouse
    assert not (here / "spark-warehouse").exists() and not (here / "metastore_db").exists()
