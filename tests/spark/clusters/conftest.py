"""Hadoop's daemons for the tests of clusters."""

from collections.abc import Iterator

import pytest

from tidegate.spark.clusters.hadoop import hadoop_jars
from tidegate.spark.clusters.hdfs import Hdfs
from tidegate.spark.jars.ivy import JarsUnavailable


@pytest.fixture(scope="session")
def hadoop() -> None:
    """What Hadoop's daemons need; where it cannot be had, their tests are skipped, and say why."""
    try:
        hadoop_jars()
    except JarsUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def hdfs(hadoop: None) -> Iterator[Hdfs]:
    """A NameNode and a DataNode; a test that stops one has to start it again."""
    with Hdfs() as running:
        yield running
