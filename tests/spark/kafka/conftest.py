"""A session that can read Kafka: the one of all tests, given the connector while it runs."""

import pytest
from pyspark.sql import SparkSession

from tidegate.spark.kafka.connector import add_connector


@pytest.fixture(scope="session")
def kafka_spark(spark: SparkSession, kafka_jars: None) -> SparkSession:
    add_connector(spark)
    return spark
