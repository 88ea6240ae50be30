"""Where the demo's rows come from: our own source, or a topic of a real Kafka broker.

Both have the same rows at the same times. What was counted can be verified against either: our
source makes any range of its rows again, and the producer says what the broker acknowledged.
"""

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame, SparkSession

from tidegate.errors import TidegateError
from tidegate.spark.kafka.batch_offsets import batch_offsets
from tidegate.spark.kafka.broker import Broker
from tidegate.spark.kafka.producer import ProducerProcess
from tidegate.spark.kafka.rows import topic_rows, topic_table
from tidegate.spark.kafka.topic_load import TopicLoad
from tidegate.spark.kafka.topics import create_topic
from tidegate.spark.sources.arrivals import arrivals

Counts = npt.NDArray[np.int64]

_WARM_RATE, _WARM_S = "constant:400", 600.0
_PARTITIONS = 2
_TOPIC, _WARM_TOPIC = "surge", "warm-up"


class OwnSource:
    """`tidegate.arrivals`, which begins with the query that reads it."""

    def __init__(self, load: TopicLoad) -> None:
        self._load = load

    def warm(self, spark: SparkSession) -> DataFrame:
        """Other rows of the same kind, to warm up with."""
        return arrivals(spark, _WARM_RATE, partitions=_PARTITIONS)

    def stream(self, spark: SparkSession) -> DataFrame:
        """The rows."""
        load = self._load
        return arrivals(
            spark,
            load.profile,
            keys=load.keys,
            seed=load.seed,
            seconds=load.seconds,
            partitions=_PARTITIONS,
        )

    def begin(self) -> None:
        """Nothing: the rows arrive by themselves."""

    def produced(self) -> Counts:
        """Rows per key, when all have arrived."""
        return self._first(self._load.count)

    def processed(self, spark: SparkSession, checkpoint: str, batch_id: int, rows: int) -> Counts:
        """Rows per key up to this batch: the first ones, because batches follow their order."""
        return self._first(rows)

    def close(self) -> None:
        """Nothing: it ends with its query."""

    def _first(self, rows: int) -> Counts:
        return np.bincount(self._load.rows(0, rows).key, minlength=self._load.keys.count)


class TopicSource:
    """A topic of a broker of our own; a child process produces to it."""

    def __init__(self, load: TopicLoad) -> None:
        self._load = load
        self._producers: list[ProducerProcess] = []
        self._broker = Broker()
        try:
            for topic in (_TOPIC, _WARM_TOPIC):
                create_topic(self._broker.servers, topic, _PARTITIONS)
        except BaseException:
            self._broker.close()
            raise

    def warm(self, spark: SparkSession) -> DataFrame:
        """Other rows of the same kind, to warm up with."""
        self._produce(_WARM_TOPIC, TopicLoad.of(_WARM_RATE, self._load.keys, _WARM_S))
        return topic_rows(spark, self._broker.servers, _WARM_TOPIC)

    def stream(self, spark: SparkSession) -> DataFrame:
        """The rows."""
        return topic_rows(spark, self._broker.servers, _TOPIC)

    def begin(self) -> None:
        """End the warm-up, and produce from now on."""
        while self._producers:
            self._producers.pop().kill()
        self._produce(_TOPIC, self._load)

    def produced(self) -> Counts:
        """Rows per key that the broker acknowledged, when all have been sent."""
        done = self._producers[-1].wait(self._load.seconds)
        if done.failed:
            raise TidegateError(f"the Kafka broker did not acknowledge {done.failed:,} records")
        counts = np.zeros(self._load.keys.count, np.int64)
        counts[done.keys] = done.counts
        return counts

    def processed(self, spark: SparkSession, checkpoint: str, batch_id: int, rows: int) -> Counts:
        """Rows per key that the topic has up to the offsets of this batch."""
        ends = batch_offsets(checkpoint, batch_id, _TOPIC)
        table = topic_table(spark, self._broker.servers, _TOPIC, ends)
        keys = table.select("key").toArrow()["key"].to_numpy()
        return np.bincount(keys, minlength=self._load.keys.count)

    def close(self) -> None:
        """End producers and broker."""
        while self._producers:
            self._producers.pop().kill()
        self._broker.close()

    def _produce(self, topic: str, load: TopicLoad) -> None:
        self._producers.append(ProducerProcess(self._broker.servers, topic, load))
        self._producers[-1].begin()
