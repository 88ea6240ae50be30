"""How far a query is behind its sources: rows and seconds, by partition where the source tells.

Kafka tells offsets: how far a batch read, and how far each partition was written when the batch was
planned. The difference is the lag. It is measured even where a read limit lets a batch take only a
part of what there is, so a batch that is limited is not mistaken for the load.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """One partition of a source during the tick, by its offsets."""

    topic: str
    partition: int
    behind_rows: int
    """Rows that it had when the newest batch was planned and that the batch left in it."""
    taken_rows: int = 0
    """Rows that the batches of the tick took from it."""
    arrived_rows: int = 0
    """How many rows it grew by, between the plans of the batches."""
    stuck: bool = False
    """Nothing is read from it although it grows, while rows of other partitions are read."""

    @property
    def name(self) -> str:
        """The partition, for a sentence."""
        return f"partition {self.partition} of '{self.topic}'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far the newest finished batch of a segment left its sources behind."""

    partitions: tuple[PartitionLag, ...] = ()
    """Each partition of its sources; empty for sources that do not tell offsets by partition."""
    seconds: float | None = None
    """Time in which as many rows arrive as are behind, at the present rate; None without a rate."""
    age_s: float | None = None
    """Time between the arrival of the newest row that was read and the plan of its batch, by the
    row's own stamp. It contains the time until the next trigger; None without stamps."""
    limit_rows: int | None = None
    """Rows that one batch may take (`maxOffsetsPerTrigger`); None: no limit is known."""
    limit_files: int | None = None
    """The same in files (`maxFilesPerTrigger`)."""
    min_partitions: int | None = None
    """Kafka's option `minPartitions`; None: not given."""

    @property
    def rows(self) -> int:
        """Rows behind, in all partitions."""
        return sum(one.behind_rows for one in self.partitions)

    @property
    def reachable_rows(self) -> int:
        """Rows behind that the next batches can take: those of partitions that are not stuck."""
        return sum(one.behind_rows for one in self.partitions if not one.stuck)

    @property
    def readers(self) -> int | None:
        """Tasks that read the source: one for each partition with rows, or `minPartitions` if more.

        None where the source does not tell its partitions.
        """
        if not self.partitions:
            return None
        with_rows = sum(one.taken_rows > 0 for one in self.partitions)
        return max(with_rows or len(self.partitions), self.min_partitions or 0)
