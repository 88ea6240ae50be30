"""The source on Spark: every row once, stamped, and the same again after a restart."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.errors import AskedWrongly
from tidegate.spark.sources.arrivals import arrivals
from tidegate.workload.keys import parse_keys
from tidegate.workload.parse import parse_profile
from tidegate.workload.rows import rows_between

PROFILE, KEYS, SEED, SECONDS = "step:400@0,4000@1,100@2", "zipf:50,1.2@1.5", 11, 3.0
ROWS = parse_profile(PROFILE).count(3000)


class Sink:
    """Keeps what every attempt at a batch brought; may fail at one of them."""

    def __init__(self) -> None:
        self.tables: list[tuple[int, pa.Table]] = []
        self.fail_at: int | None = None

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        self.tables.append((batch_id, rows.toArrow()))
        if batch_id == self.fail_at:
            raise RuntimeError("this sink fails now")

    @property
    def rows(self) -> int:
        return sum(table.num_rows for table in dict(self.tables).values())


def start(spark: SparkSession, sink: Sink, checkpoint: Path, seed: int = SEED) -> StreamingQuery:
    rows = arrivals(spark, PROFILE, keys=KEYS, seed=seed, seconds=SECONDS, partitions=3)
    return rows.writeStream.foreachBatch(sink).option("checkpointLocation", str(checkpoint)).start()


def test_every_row_once_and_as_the_pure_functions_say(spark, wait_for, tmp_path: Path) -> None:
    sink = Sink()
    query = start(spark, sink, tmp_path / "checkpoint")
    wait_for(lambda: sink.rows >= ROWS, query)
    query.stop()
    table = pa.concat_tables([table for _, table in sink.tables]).sort_by("seq")
    wanted = rows_between(parse_profile(PROFILE), parse_keys(KEYS), SEED, 0, ROWS)
    np.testing.assert_array_equal(table["seq"].to_numpy(), wanted.seq)
    np.testing.assert_array_equal(table["key"].to_numpy(), wanted.key)
    np.testing.assert_array_equal(table["value"].to_numpy(), wanted.value)
    stamps_us = table["timestamp"].cast(pa.int64()).to_numpy()
    start_us = stamps_us[0] - wanted.arrival_us[0]
    np.testing.assert_array_equal(stamps_us - start_us, wanted.arrival_us)
    assert start_us % 1000 == 0


def test_a_failed_batch_is_read_again_bit_for_bit(spark, wait_for, tmp_path: Path) -> None:
    sink = Sink()
    sink.fail_at = 0
    query = start(spark, sink, tmp_path / "checkpoint")
    with pytest.raises(StreamingQueryException, match="this sink fails now"):
        query.awaitTermination(180)
    sink.fail_at = None
    query = start(spark, sink, tmp_path / "checkpoint")
    wait_for(lambda: sink.rows >= ROWS, query)
    query.stop()
    first_try, second_try = (table for batch_id, table in sink.tables if batch_id == 0)
    assert first_try.sort_by("seq").equals(second_try.sort_by("seq"))
    seq = pa.concat_tables(list(dict(sink.tables).values()))["seq"].to_numpy()
    np.testing.assert_array_equal(np.sort(seq), np.arange(ROWS))


def test_another_workload_on_an_old_checkpoint_is_refused(spark, wait_for, tmp_path) -> None:
    sink = Sink()
    query = start(spark, sink, tmp_path / "checkpoint")
    wait_for(lambda: sink.rows > 0, query)
    query.stop()
    sink.fail_at = 0
    query = start(spark, sink, tmp_path / "checkpoint", seed=SEED + 1)
    with pytest.raises(StreamingQueryException, match="another profile, keys or seed"):
        query.awaitTermination(180)


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"partitions": 0}, {"profile": "-1"}])
def test_asked_wrongly(spark: SparkSession, wrong: dict[str, object]) -> None:
    with pytest.raises(AskedWrongly):
        arrivals(spark, **wrong)  # type: ignore[arg-type]
