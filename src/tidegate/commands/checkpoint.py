"""Reads the records of a checkpoint, or says why there are none."""

from pathlib import Path

from rich.text import Text

from tidegate.commands.output import err
from tidegate.errors import AskedWrongly
from tidegate.logs import reason
from tidegate.recording import Directory, ReadableRecords, has_records, read_readable


def read_checkpoint(checkpoint: str) -> ReadableRecords:
    """The records that can be read; the others are reported on standard error."""
    if "://" in checkpoint and not checkpoint.startswith("file://"):
        reading = read_readable(_remote(checkpoint))
    else:
        where = Path(checkpoint.removeprefix("file://"))
        if where.is_dir() and not has_records(path.name for path in where.iterdir()):
            raise AskedWrongly(_why_none(str(where), str(where.absolute())))
        reading = read_readable(where)
    for sentence in reading.left_out:
        err.print(Text(f"tidegate: {sentence}", style="yellow"), soft_wrap=True)
    return reading


def _remote(url: str) -> Directory:
    """The directory of a checkpoint in a store, after a look at whether it has records."""
    # Imported here because it imports Spark's types, which most calls do not need.
    from tidegate.spark.state.files import Durable

    place = Durable(url)
    try:
        names = place.names()
    except (OSError, ValueError) as error:  # pyarrow's errors are of these kinds
        raise AskedWrongly(
            f"{url} cannot be read ({reason(error)}): check the address and the access to it"
        ) from error
    if not has_records(names):
        raise AskedWrongly(_why_none(url, url))
    return place


def _why_none(where: str, url: str) -> str:
    from tidegate.spark.batch.checkpoint import Checkpoint
    from tidegate.spark.state.files import Durable

    found = Checkpoint(Durable(url)).description()
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
