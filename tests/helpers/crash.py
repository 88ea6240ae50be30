"""Makes a pipeline fail at a chosen step of a chosen micro-batch."""

from tidegate.spark.batch.step import Step
from tidegate.spark.run import Run


class Crash(Exception):
    """The error that makes the pipeline fail."""


def crash_after(run: Run, step: Step, at_batch: int, segment: str = "main") -> None:
    """Fail a segment right after this step of this batch.

    Call it before the batch can begin: start the pipeline first, and feed it afterwards.
    """

    def fail(reached: Step, batch_id: int) -> None:
        if reached is step and batch_id == at_batch:
            raise Crash(f"after '{step.value}' of batch {batch_id}")

    run.segments[segment].after_step = fail
