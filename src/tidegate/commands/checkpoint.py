"""Reads the records of a checkpoint, or says why there are none."""

from pathlib import Path

from rich.text import Text

from tidegate.commands.output import err
from tidegate.errors import AskedWrongly
from tidegate.recording import ReadableRecords, read_readable


def read_checkpoint(checkpoint: str) -> ReadableRecords:
    """The records that can be read; the others are reported on standard error."""
    if "://" in checkpoint and not checkpoint.startswith("file://"):
        raise AskedWrongly(
            f"{checkpoint} is not on this machine: records are kept in local checkpoints only;"
            " name a directory"
        )
    where = Path(checkpoint.removeprefix("file://"))
    if where.is_dir() and not any(where.glob("records*.jsonl")):
        raise AskedWrongly(_why_none(where))
    reading = read_readable(where)
    for sentence in reading.left_out:
        err.print(Text(f"tidegate: {sentence}", style="yellow"), soft_wrap=True)
    return reading


def _why_none(where: Path) -> str:
    # Imported here because it imports Spark's types, which most calls do not need.
    from tidegate.spark.batch.checkpoint import Checkpoint
    from tidegate.spark.state.files import Durable

    found = Checkpoint(Durable(str(where.absolute()))).description()
    if found is None:
        return (
            f"{where} is not a checkpoint and has no records: give the directory that was passed as"
            " checkpoint="
        )
    return (
        f"The checkpoint {where} of pipeline '{found.get('pipeline')}' has no records: they are"
        " written only for runs with a target; start it with target= (add dry_run=True to record"
        " decisions without acting on them)"
    )
