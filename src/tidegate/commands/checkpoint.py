"""Reads the records of a checkpoint, or says why there are none."""

from collections.abc import Iterable
from pathlib import Path

from rich.text import Text

from tidegate.commands.output import err
from tidegate.errors import AskedWrongly
from tidegate.logs import reason
from tidegate.recording import Directory, ReadableRecords, has_records, read_readable


def read_checkpoint(checkpoint: str) -> ReadableRecords:
    """The records that can be read; the others are reported on standard error."""
    reading = read_readable(records_place(checkpoint))
    tell_left_out(reading.left_out)
    return reading


def records_place(checkpoint: str) -> Path | Directory:
    """Where the records of a checkpoint are; one that has none is refused, with the reason."""
    if "://" in checkpoint and not checkpoint.startswith("file://"):
        return _remote(checkpoint)
    where = Path(checkpoint.removeprefix("file://"))
    if where.is_dir() and not has_records(path.name for path in where.iterdir()):
        raise AskedWrongly(_why_none(str(where), str(where.absolute())))
    return where


def tell_left_out(sentences: Iterable[str]) -> None:
    """Say on standard error which lines could not be read."""
    for sentence in sentences:
        err.print(Text(f"tidegate: {sentence}", style="yellow"), soft_wrap=True)


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
