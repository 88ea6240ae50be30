"""The writer of Spark's logs on S3: compiled in the session's JVM, and used for one query only."""

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from tidegate.errors import TidegateError
from tidegate.spark.s3.spark_logs import WRITER, check_logs, install_writer, logs_on
from tidegate.spark.session import session
from tidegate.spark.state.files import Durable

SETTING = "spark.sql.streaming.checkpointFileManagerClass"


def test_the_writer_compiles_and_never_replaces_in_silence(spark: SparkSession, tmp_path) -> None:
    java = spark.sparkContext._jvm
    install_writer(java)
    install_writer(java)
    kept = spark.conf.get(SETTING, None)
    spark.conf.set(SETTING, WRITER)
    try:
        conf = spark._jsparkSession.sessionState().newHadoopConf()
    finally:
        spark.conf.unset(SETTING) if kept is None else spark.conf.set(SETTING, kept)
    streaming = java.org.apache.spark.sql.execution.streaming.checkpointing
    path = java.org.apache.hadoop.fs.Path(f"file://{tmp_path}/1")
    manager = streaming.CheckpointFileManager.create(path.getParent(), conf)
    entry = manager.createAtomic(path, False)
    entry.write(65)
    # A local disk knows no put under a condition: that is an error, and no put without one.
    with pytest.raises(IllegalArgumentException, match=r"create\.conditional\.overwrite"):
        entry.close()
    assert not (tmp_path / "1").exists()
    entry = manager.createAtomic(path, False)
    entry.write(65)
    entry.cancel()
    entry.close()
    assert not (tmp_path / "1").exists()
    entry = manager.createAtomic(path, True)
    entry.write(66)
    entry.close()
    assert (tmp_path / "1").read_bytes() == b"B"


def test_the_settings_of_a_session_are_put_back(spark: SparkSession, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    before = spark.conf.get(SETTING, None)
    with logs_on(spark, Durable("s3://ads/ck")):
        assert spark.conf.get(SETTING) == WRITER
        assert spark.conf.get("fs.s3a.endpoint") == "http://127.0.0.1:9"
    assert spark.conf.get(SETTING, None) == before
    assert spark.conf.get("fs.s3a.endpoint", None) is None
    with logs_on(spark, Durable(str(tmp_path))):
        assert spark.conf.get(SETTING, None) == before


def test_a_session_without_s3_is_refused(spark: SparkSession) -> None:
    with pytest.raises(TidegateError, match="this Spark session has no filesystem for S3; stop it"):
        check_logs(spark, Durable("s3://ads/ck"))
    with pytest.raises(TidegateError, match=r"start one with tidegate\.session"):
        session(s3=True)
