"""Writes a batch to a table of Delta Lake, whose own log knows which batches it has."""

from dataclasses import dataclass

from pyspark.sql import DataFrame

from tidegate.spark.sinks.attempt import Attempt

RESERVED = ("txnAppId", "txnVersion")
"""The options by which Delta Lake recognises a batch: it skips one that its log has."""


@dataclass(frozen=True, slots=True)
class DeltaSink:
    """A table of Delta Lake."""

    options: tuple[tuple[str, str], ...]
    partition_by: tuple[str, ...] = ()

    def write(self, frame: DataFrame, attempt: Attempt) -> None:
        """Append a batch unless the table has it."""
        writer = frame.write.format("delta").mode("append").options(**dict(self.options))
        if self.partition_by:
            writer = writer.partitionBy(*self.partition_by)
        writer.options(**transaction(attempt)).save()


def transaction(attempt: Attempt) -> dict[str, str]:
    """The name of a batch in the table's log."""
    name = f"tidegate/{attempt.pipeline}/{attempt.sink}/{attempt.query}"
    return dict(zip(RESERVED, (name, str(attempt.batch_id)), strict=True))
