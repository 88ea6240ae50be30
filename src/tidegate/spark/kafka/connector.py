"""Spark's Kafka connector for a session: pinned jars that fit the release of pyspark.

pyspark does not bring it. Spark's own way, `spark.jars.packages`, resolves it anew at every start,
asks for releases that not every repository has, and fails over a local Maven cache that holds a POM
without its jar. So its jars are pinned like those of the broker, and given to Spark as files.
"""

import logging
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from tidegate.errors import TidegateError
from tidegate.spark.jars.cache import jars_of
from tidegate.spark.jars.lock import read_lock
from tidegate.spark.sinks.format_class import class_of

_LOCKS = {(4, 2): "connector-4.2.lock", (4, 3): "connector-4.2.lock"}
"""By the release of pyspark. The connector of 4.2 was tried with both."""
_WHAT = "Spark's Kafka connector"
_CREDENTIALS = "spark.security.credentials.kafka.enabled"

log = logging.getLogger("tidegate")


def connector_lock(version: str) -> Path:
    """The lock file of the connector for a release of pyspark."""
    major, minor, *_ = version.split(".")
    release = (int(major), int(minor))
    name = _LOCKS.get(release)
    if name is None:
        newest = max(_LOCKS)
        if release < newest:
            raise TidegateError(
                f"no Kafka connector was tried with pyspark {version}; use one of "
                f"{', '.join(f'{one}.{two}' for one, two in sorted(_LOCKS))}"
            )
        name = _LOCKS[newest]
        log.warning(
            "no Kafka connector was tried with pyspark %s; taking the one for %d.%d",
            version,
            *newest,
        )
    return Path(__file__).with_name(name)


def connector_jars() -> list[Path]:
    """The connector's jars for this pyspark; they are fetched (10 MB) if they are not there yet."""
    lock = connector_lock(pyspark.__version__)
    jars = jars_of(lock, _WHAT)
    picked = ", ".join(f"{jar.name} {jar.version}" for jar in read_lock(lock))
    log.info("Kafka connector for pyspark %s: %s", pyspark.__version__, picked)
    return jars


def connector_settings(given: str = "") -> dict[str, str]:
    """Settings that start Spark with the connector, beside the jars that are given already."""
    jars = [*filter(None, given.split(",")), *(str(jar) for jar in connector_jars())]
    # The provider of Kerberos tokens is of another release than Spark, so it must not be started.
    return {"spark.jars": ",".join(jars), _CREDENTIALS: "false"}


def has_connector(session: SparkSession) -> bool:
    """Whether this session can read and write Kafka."""
    return class_of(session, "kafka") is not None


def add_connector(session: SparkSession) -> None:
    """Give a running session the connector, unless it has one."""
    if has_connector(session):
        return
    for jar in connector_jars():
        session.sql(f"ADD JAR '{jar.as_uri()}'")
    if not has_connector(session):
        raise TidegateError(
            "this Spark session did not take the Kafka connector; stop it, and start one with "
            "tidegate.session(..., kafka=True)"
        )
