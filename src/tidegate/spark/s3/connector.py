"""Hadoop's S3A for a session: pinned jars that fit Spark's Hadoop, and its settings.

pyspark brings Hadoop without S3A. Hadoop's own dependency for it is Amazon's bundle, which is 686
MB and goes to every executor. What S3A needs are the modules for S3 alone, 13 MB, with the HTTP
client and Netty that Spark brings anyway.
"""

import os
from pathlib import Path

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from tidegate.errors import TidegateError
from tidegate.spark.jars.cache import jars_of
from tidegate.spark.s3.address import ENDPOINTS, REGIONS, Address

_WHAT = "Hadoop's filesystem for S3"
_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_CREDENTIALS = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
"""Environment, profile, web identity, role of the machine: where pyarrow and botocore look too."""


def hadoop_version() -> str:
    """The version of Hadoop that this pyspark brings; S3A must be of the same."""
    jars = Path(pyspark.__file__).parent / "jars"
    found = sorted(path.stem for path in jars.glob("hadoop-client-api-*.jar"))
    if not found:
        raise TidegateError(
            f"pyspark {pyspark.__version__} is here without its jars; install it from PyPI"
        )
    return found[-1].removeprefix("hadoop-client-api-")


def connector_lock(hadoop: str) -> Path:
    """The lock file of S3A for a version of Hadoop."""
    lock = Path(__file__).with_name(f"connector-{hadoop}.lock")
    if not lock.is_file():
        tried = sorted(path.stem.removeprefix("connector-") for path in lock.parent.glob("*.lock"))
        raise TidegateError(
            f"S3 was not tried with the Hadoop {hadoop} of pyspark {pyspark.__version__}, only "
            f"with {', '.join(tried)}; leave s3=True out, and give "
            f"spark.jars.packages=org.apache.hadoop:hadoop-aws:{hadoop}"
        )
    return lock


def connector_jars() -> list[Path]:
    """The jars of S3A for this pyspark; they are fetched (13 MB) if they are not there yet."""
    return jars_of(connector_lock(hadoop_version()), _WHAT)


def connector_settings(given: str = "") -> dict[str, str]:
    """Settings that start Spark with S3A, beside the jars that are given already."""
    jars = [*filter(None, given.split(",")), *(str(jar) for jar in connector_jars())]
    # The address of a store comes from the environment; the bucket does not matter for it.
    options = s3a_options(Address.of("s3://any"))
    # Executors get no keys this way: Spark shows its settings.
    told = {name: os.environ[name] for name in (*ENDPOINTS, *REGIONS) if os.environ.get(name)}
    return {
        "spark.jars": ",".join(jars),
        **{f"spark.hadoop.{name}": value for name, value in options.items()},
        **{f"spark.executorEnv.{name}": value for name, value in told.items()},
    }


def s3a_options(address: Address) -> dict[str, str]:
    """Hadoop's options by which S3A finds the store that pyarrow and botocore find."""
    options = {
        "fs.s3a.aws.credentials.provider": _CREDENTIALS,
        # The default reads ahead for columns of Parquet; entries of logs are read whole.
        "fs.s3a.input.stream.type": "classic",
    }
    if address.region is not None:
        options["fs.s3a.endpoint.region"] = address.region
    if address.endpoint is not None:
        options |= {
            "fs.s3a.endpoint": address.endpoint,
            "fs.s3a.endpoint.region": address.region or "us-east-1",
            "fs.s3a.path.style.access": "true",
        }
    return options


def has_connector(session: SparkSession) -> bool:
    """Whether this session can read and write S3."""
    java = session.sparkContext._jvm
    assert java is not None
    try:
        loader = java.java.lang.Thread.currentThread().getContextClassLoader()
        java.java.lang.Class.forName(_CLASS, False, loader)
    except Py4JJavaError:
        return False
    return True


def require_connector(session: SparkSession) -> None:
    """Refuse a session that cannot reach S3. Jars cannot be added to the filesystems it has."""
    if not has_connector(session):
        raise TidegateError(
            "this Spark session has no filesystem for S3; stop it, and start one with "
            "tidegate.session(..., s3=True), or under spark-submit with the package "
            f"org.apache.hadoop:hadoop-aws:{hadoop_version()}"
        )
