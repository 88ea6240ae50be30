"""The micro-batches of a run, from its records: what each of them got done, and when."""

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.control.learning.outliers import NEW_TASKS
from tidegate.control.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneBatch:
    """One micro-batch."""

    ended_s: float
    duration_s: float
    rows: float
    """Rows of the source that it completed; rows that came back by a loop do not count."""
    busy_s: float = 0.0
    """The time of all its tasks in operators, at work or stretched."""
    latency_s: float | None = None
    """Mean sojourn of these rows; None if it had none."""
    rescaled: bool = False
    """Whether it was the first one after a rescale: with another number of tasks."""

    @property
    def began_s(self) -> float:
        """When Spark triggered it."""
        return self.ended_s - self.duration_s


def done_batches(records: Sequence[Record], reader: str) -> list[DoneBatch]:
    """The batches of a pipeline of one segment, oldest first.

    `reader` is the operator that gets every row of the source once.
    """
    found: list[DoneBatch] = []
    tasks: int | None = None
    for record in records:
        ended = [batch for one in record.measurement.segments for batch in one.batches]
        read = sum(one.rows for one in record.measurement.operators if one.name == reader)
        busy_s = sum(one.busy_s for one in record.measurement.operators)
        taken = sum(batch.rows for batch in ended)
        for batch in ended:
            another = tasks is not None and batch.tasks != tasks
            share = batch.rows / taken if taken else 1.0 / len(ended)
            found.append(
                DoneBatch(
                    ended_s=batch.ended_s,
                    duration_s=batch.duration_s,
                    rows=read * share,
                    busy_s=busy_s * share,
                    latency_s=batch.latency_s,
                    rescaled=another or batch.outlier == NEW_TASKS,
                )
            )
            tasks = batch.tasks
    return found
