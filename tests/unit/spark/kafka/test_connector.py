"""Which connector fits which release of pyspark."""

import logging

import pytest

from tidegate.errors import TidegateError
from tidegate.spark.jars.lock import read_lock
from tidegate.spark.kafka import connector
from tidegate.spark.releases import FROM, TRIED_BELOW


def test_every_release_that_was_tried_has_one():
    for minor in range(FROM[1], TRIED_BELOW[1]):
        jars = read_lock(connector.connector_lock(f"{FROM[0]}.{minor}.0"))
        assert "spark-sql-kafka-0-10_2.13" in {jar.name for jar in jars}


def test_a_newer_release_gets_the_newest_with_a_warning(caplog):
    with caplog.at_level(logging.WARNING, "tidegate"):
        newest = connector.connector_lock("4.9.0.dev1")
    assert newest == connector.connector_lock("4.3.0")
    assert "tried with pyspark 4.9.0.dev1; taking the one for 4.3" in caplog.text


def test_an_older_release_is_refused():
    with pytest.raises(TidegateError, match=r"pyspark 4\.1\.1; use one of 4\.2, 4\.3"):
        connector.connector_lock("4.1.1")


def test_what_was_picked_is_logged_and_given_to_spark(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(connector, "jars_of", lambda lock, what: [tmp_path / "a", tmp_path / "b"])
    with caplog.at_level(logging.INFO, "tidegate"):
        settings = connector.connector_settings("own.jar")
    assert settings["spark.jars"] == f"own.jar,{tmp_path}/a,{tmp_path}/b"
    assert settings["spark.security.credentials.kafka.enabled"] == "false"
    assert "spark-sql-kafka-0-10_2.13 4.2.0" in caplog.text
    assert connector.connector_settings()["spark.jars"].startswith(str(tmp_path))
