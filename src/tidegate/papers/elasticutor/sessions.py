"""Spark sessions of the experiments, which are stopped whatever happens."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from tidegate.spark.session import session

TASKS = 24
"""Tasks that stand for as many cores, because they wait."""
LOCAL = f"local[{TASKS + 2}]"
"""Two more than the tasks, for the source."""


@contextmanager
def spark_on(master: str) -> Iterator[SparkSession]:
    """A session of its own."""
    spark = session(master, "tidegate-paper")
    try:
        yield spark
    finally:
        spark.stop()
