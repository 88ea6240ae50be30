"""Spark sessions of the experiments, which are stopped whatever happens."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from tidegate.spark.session import session


@contextmanager
def spark_on(master: str, name: str = "tidegate paper") -> Iterator[SparkSession]:
    """A session of its own."""
    spark = session(master, name)
    try:
        yield spark
    finally:
        spark.stop()
