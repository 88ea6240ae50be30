"""Makes a savepoint: of a checkpoint that nobody uses, of a run of this process, or of another's.

- Nobody uses the checkpoint: this process takes it, so that nobody starts meanwhile.
- A run of this process: its segments are held between two batches while the small files are copied,
  and its cleaner until the state files are.
- Another process runs it: the newest version is copied. If the pipeline removes a part of it
  meanwhile, what is missing of a newer one is copied, until one is complete. Several segments
  commit each at its own pace, so this works for pipelines with one segment only.
"""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.batch.checkpoint import INDEX, Checkpoint, require_description
from tidegate.spark.batch.committed import newest_batch
from tidegate.spark.owner.epochs import Epochs
from tidegate.spark.owner.owner import InUse, take
from tidegate.spark.savepoint.contents import Contents, Item, contents
from tidegate.spark.savepoint.copy import Told, copy_all
from tidegate.spark.savepoint.index import Copied, Savepoint
from tidegate.spark.state.files import Durable, Missing
from tidegate.spark.state.location import location_of
from tidegate.spark.state.manifest import Manifests

_TRIES = 100
Expected = Callable[[int], None]
"""Told how many bytes of state there are to copy, before they are copied."""


def make_savepoint(
    checkpoint: str,
    target: str,
    *,
    version: int | None = None,
    expected: Expected = lambda size: None,
    told: Told = lambda size: None,
) -> Savepoint:
    """A savepoint of a checkpoint, whether its pipeline runs or not.

    `version` is the number of a committed batch that is kept; without it, the newest one.
    """
    source, room = Durable(location_of(checkpoint)), Durable(location_of(target))
    description = require_description(Checkpoint(source))
    _refuse_used(room)
    if version is not None:
        return _of_version(source, room, description, version, expected, told)
    try:
        owner = take(Epochs(source.below("owner")), str(description["pipeline"]))
    except InUse as error:
        if not _alone(description):
            raise AskedWrongly(
                f"{error}; it has several segments, which commit each at its own pace, so only the "
                "process that runs it can make a savepoint meanwhile: run.savepoint(target)"
            ) from None
        return _following(source, room, description, expected, told)
    try:
        found = contents(source, require_description(Checkpoint(source)))
        expected(_size(found.state))
        small = copy_all(source, room, found.small)
        owner.lease.check()
        return _completed(room, found, [*small, *copy_all(source, room, found.state, told)])
    finally:
        owner.release()


def savepoint_of_run(
    root: Durable,
    target: str | os.PathLike[str],
    between_batches: AbstractContextManager[object],
    without_cleaning: AbstractContextManager[object],
) -> Savepoint:
    """A savepoint of a run of this process.

    In the first context no batch of the run makes progress, and in the second nothing is removed.
    """
    room = Durable(location_of(target))
    _refuse_used(room)
    with without_cleaning:
        with between_batches:
            found = contents(root, require_description(Checkpoint(root)))
            small = copy_all(root, room, found.small)
        return _completed(room, found, [*small, *copy_all(root, room, found.state)])


def _of_version(
    source: Durable,
    room: Durable,
    description: Mapping[str, Any],
    version: int,
    expected: Expected,
    told: Told,
) -> Savepoint:
    """A savepoint of an older version; nothing holds the pipeline, so the version may go."""
    if not _alone(description):
        raise AskedWrongly(
            "the pipeline has several segments, whose batches do not belong together by their "
            "numbers; leave --version out"
        )
    (segment,) = description["segments"]
    place = Checkpoint(source)
    kept = Manifests(place.segment(segment).below("manifests"), place.states).committed()
    if version not in kept:
        known = ", ".join(map(str, kept)) or "none"
        raise AskedWrongly(f"there is no version {version}; kept versions: {known}")
    found = contents(source, description, {segment: version})
    expected(_size(found.state))
    small = copy_all(source, room, found.small)
    return _completed(room, found, [*small, *copy_all(source, room, found.state, told)])


def _following(
    source: Durable,
    room: Durable,
    description: Mapping[str, Any],
    expected: Expected,
    told: Told,
) -> Savepoint:
    """A savepoint of a pipeline that another process runs, and that does not wait."""
    (segment,) = description["segments"]
    done: dict[str, Copied] = {}
    for _ in range(_TRIES):
        batch = newest_batch(Checkpoint(source), segment)
        try:
            found = contents(source, description, {segment: batch})
            new = [item for item in found.state if item.path not in done]
            expected(_size(new))
            small = copy_all(source, room, found.small)
            for item in new:
                done |= {one.path: one for one in copy_all(source, room, [item], told)}
        except Missing:
            if newest_batch(Checkpoint(source), segment) == batch:
                raise  # it is not the pipeline that has removed it
            continue
        wanted = {item.path for item in found.state}
        for path in done.keys() - wanted:
            folder, _, name = path.rpartition("/")
            room.below(folder).remove(name)
        return _completed(room, found, [*small, *(done[path] for path in sorted(wanted))])
    raise TidegateError(
        "the pipeline commits faster than its state can be copied; make the savepoint while it is "
        "stopped, or keep more versions with start(versions=...)"
    )


def _completed(room: Durable, found: Contents, files: list[Copied]) -> Savepoint:
    made = Savepoint(room.url, time.time(), found.batches, found.description, tuple(files))
    made.write()
    return made


def _refuse_used(room: Durable) -> None:
    """Refuse a directory that is a savepoint or a checkpoint already.

    What an attempt has left that was killed is written again.
    """
    if room.exists(INDEX):
        raise AskedWrongly(f"{room.url} is a savepoint already; give another directory")
    if Checkpoint(room).description() is not None:
        raise AskedWrongly(f"{room.url} is a checkpoint; give another directory")


def _alone(description: Mapping[str, Any]) -> bool:
    return len(description["segments"]) == 1 and not description["channels"]


def _size(items: tuple[Item, ...] | list[Item]) -> int:
    return sum(item.size_bytes or 0 for item in items)
