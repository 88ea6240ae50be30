"""Writes a batch to a format that can only append, so that a replay writes it a second time."""

from dataclasses import dataclass

from pyspark.sql import DataFrame

from tidegate.spark.sinks.attempt import Attempt


@dataclass(frozen=True, slots=True)
class AppendSink:
    """Any other format of Spark, such as `jdbc` or `console`: at least once."""

    format: str
    options: tuple[tuple[str, str], ...]

    def write(self, frame: DataFrame, attempt: Attempt) -> None:
        """Append a batch, whether or not an earlier try did."""
        frame.write.format(self.format).mode("append").options(**dict(self.options)).save()
