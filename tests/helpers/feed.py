"""Lets a test decide what each micro-batch contains: one Parquet file is one micro-batch."""

import os
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession


class Feed:
    """A directory that a stream reads, one file per micro-batch, in the order of writing."""

    def __init__(self, directory: Path, ddl: str) -> None:
        self.directory, self.ddl = directory, ddl
        self.batches: list[pa.Table] = []
        directory.mkdir(parents=True, exist_ok=True)

    def add(self, table: pa.Table) -> None:
        number = len(self.batches)
        aside = self.directory / f".{number:05d}"
        pq.write_table(table, aside)
        os.utime(aside, (1e9 + number, 1e9 + number))
        aside.rename(self.directory / f"{number:05d}.parquet")
        self.batches.append(table)

    def stream(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.schema(self.ddl).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(self.directory))

    def all(self) -> pa.Table:
        return pa.concat_tables(self.batches)


class Collected:
    """A sink that is idempotent by batch id: a replay replaces the output of the first try."""

    def __init__(self) -> None:
        self.batches: dict[int, list[dict]] = {}
        self.tries: dict[int, int] = defaultdict(int)

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        self.batches[batch_id] = frame.toArrow().to_pylist()
        self.tries[batch_id] += 1

    def rows(self) -> list[dict]:
        return [row for batch_id in sorted(self.batches) for row in self.batches[batch_id]]
