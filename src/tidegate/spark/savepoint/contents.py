"""What belongs to a savepoint: the files of a checkpoint from which a start would go on.

Without `until`, that is what a start on the checkpoint itself would find, a batch that was begun
included: it is repeated with its plan, as it would be there. With `until`, it is the state after
one committed batch, as if the next one had never been begun.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.batch.channel import POSITION, Log
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.committed import newest_batch
from tidegate.spark.batch.kept_names import KEPT_AS
from tidegate.spark.batch.older_versions import older
from tidegate.spark.kafka.reference import RecordsReference
from tidegate.spark.state.files import Durable, Missing
from tidegate.spark.state.manifest import Manifests
from tidegate.spark.state.version import Version

_ALONG = ("learned.json",)
"""Files of the checkpoint itself that a start reads if they are there."""
_LOGS = ("offsets", "commits")


@dataclass(frozen=True, slots=True)
class Item:
    """A file of the checkpoint."""

    folder: str
    """Its directory, relative to the checkpoint; empty: the checkpoint's own."""
    name: str
    size_bytes: int | None = None
    """None where nobody has noted how large it has to be."""
    source: str | None = None
    """Its path in the checkpoint, if it is another one there."""

    @property
    def path(self) -> str:
        """Its path, relative to the checkpoint."""
        return f"{self.folder}/{self.name}" if self.folder else self.name

    @property
    def found(self) -> tuple[str, str]:
        """Its directory and name in the checkpoint."""
        folder, _, name = (self.source or self.path).rpartition("/")
        return folder, name


@dataclass(frozen=True, slots=True)
class Contents:
    """What a savepoint of a checkpoint consists of, besides the description."""

    description: Mapping[str, Any]
    batches: Mapping[str, int]
    """For each segment the last committed batch; -1: none."""
    small: tuple[Item, ...]
    """Plans, offsets, manifests and channels, which change while the pipeline runs."""
    state: tuple[Item, ...]
    """State files, which never change."""


def contents(
    root: Durable, description: Mapping[str, Any], until: Mapping[str, int] | None = None
) -> Contents:
    """The files that belong to a savepoint, `until` a batch of each segment where that is given."""
    small: list[Item] = []
    state: list[Item] = []
    batches: dict[str, int] = {}
    kept = {one.get(KEPT_AS, name) for name, one in description["operators"].items()}
    for segment in description["segments"]:
        last = None if until is None else until[segment]
        batch = newest_batch(Checkpoint(root), segment) if last is None else last
        batches[segment] = batch
        small += _of_segment(root, segment, batch, last)
        versions = _versions(root, segment, batch)
        if last is not None and last >= 0:
            _refuse_earlier(description, description["segments"][segment], versions, last)
        for operator, version in versions.items():
            if operator in kept:
                folder = f"state/{operator}"
                state += [Item(folder, file.name, file.size_bytes) for file in version.files]
    for channel in description["channels"]:
        small += _of_channel(root, channel)
    small += [Item("", name) for name in _ALONG if root.exists(name)]
    return Contents(description, batches, tuple(small), tuple(state))


def _versions(root: Durable, segment: str, batch: int) -> Mapping[str, Version]:
    if batch < 0:
        return {}
    place = Checkpoint(root)
    return Manifests(place.segment(segment).below("manifests"), place.states).load(batch).versions


def _refuse_earlier(
    description: Mapping[str, Any], names: list[str], versions: Mapping[str, Version], batch: int
) -> None:
    """Refuse a version from before an operator's state got the name that it is kept under now."""
    for name in names:
        kept = description["operators"][name].get(KEPT_AS, name)
        if kept != name and kept not in versions:
            raise AskedWrongly(
                f"version {batch} is older than the state of operator '{name}', which was dropped "
                "or resharded since; give a newer version"
            )


def _of_segment(root: Durable, segment: str, batch: int, last: int | None) -> Iterator[Item]:
    """Plans, counts, the manifest, and Spark's logs, as far as a start after `batch` needs them."""
    folder = f"segments/{segment}"
    if batch >= 0:
        yield Item(f"{folder}/manifests", f"{batch:010d}.json")
    if last is not None and (saved := older(root.below(folder), batch)).exists("complete"):
        yield from _of_older(f"{folder}", f"{folder}/older/{batch:010d}", saved.names())
        yield from _of_spark(root, f"{folder}/spark", batch, last, logs=())
        return
    for kind, first in (("plans", batch), ("counts", batch)):
        for name in root.below(f"{folder}/{kind}").names():
            number = int(name[:10]) if name[:10].isdigit() else -1
            if number >= first and (last is None or number <= last):
                yield Item(f"{folder}/{kind}", name)
    yield from _of_spark(root, f"{folder}/spark", batch, last)


def _of_older(folder: str, where: str, names: list[str]) -> Iterator[Item]:
    """What was copied for an older version, under the names that it had."""
    for name in names:
        kind, dash, rest = name.partition("-")
        if dash:
            there = f"{folder}/spark/{kind}" if kind in _LOGS else f"{folder}/{kind}"
            yield Item(there, rest, source=f"{where}/{name}")


def _of_spark(
    root: Durable, folder: str, batch: int, last: int | None, logs: tuple[str, ...] = _LOGS
) -> Iterator[Item]:
    """Spark's own checkpoint: of its two logs the newest entries, of the sources everything.

    The logs come first. So the sources have whatever the offsets speak of.
    """
    for log in logs:
        entries = [int(n) for n in root.below(f"{folder}/{log}").names() if n.isdigit()]
        wanted = [n for n in entries if n >= batch - 1 and (last is None or n <= last)]
        if last is not None and log == "offsets" and last >= 0 and last not in wanted:
            raise AskedWrongly(
                f"Spark no longer has the offsets of batch {last} in {root.url}/{folder}/offsets, "
                "so no pipeline can go on from there; give a newer version"
            )
        yield from (Item(f"{folder}/{log}", str(n)) for n in wanted)
    yield from (Item(folder, name) for name in root.below(folder).names())
    for name in root.below(folder).directories():
        if name not in _LOGS:
            yield from _all(root, f"{folder}/{name}")


def _all(root: Durable, folder: str) -> Iterator[Item]:
    here = root.below(folder)
    yield from (Item(folder, name) for name in here.names())
    for name in here.directories():
        yield from _all(root, f"{folder}/{name}")


def _of_channel(root: Durable, channel: str) -> Iterator[Item]:
    """What was handed over and is not forgotten, and how far the reader has come."""
    folder = f"channels/{channel}"
    log = Log(root.below(folder))
    read = log.read_until()
    for name in log.commits.names():
        handed = log.read(int(name.removesuffix(".json")))
        if handed is None:
            continue
        files = [file for file, _ in handed.files]
        gone = [file for file in files if not _is_there(log, file)]
        if handed.batch_id < read and gone:
            continue  # it was read, and is about to be removed
        if gone:
            raise Missing(
                f"the file {log.data.path(gone[0])} is missing; restore it from a copy of the "
                "checkpoint"
            )
        if any(RecordsReference.parsed(file) for file in files):
            if handed.batch_id < read:
                continue
            raise TidegateError(
                f"rows of the channel '{channel}' are in a Kafka topic, which no savepoint holds; "
                "let the pipeline read them all first, or cut it without channel='kafka'"
            )
        yield Item(f"{folder}/commits", name)
        yield from (Item(f"{folder}/data", file) for file in files)
    if log.directory.exists(POSITION):
        yield Item(folder, POSITION)


def _is_there(log: Log, file: str) -> bool:
    return RecordsReference.parsed(file) is not None or log.data.exists(file)
