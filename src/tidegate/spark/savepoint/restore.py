"""Makes a new checkpoint of a savepoint, for the start of a pipeline that goes on from there.

The description is written last. Until then the checkpoint is none, and the next start with the same
savepoint writes everything again.
"""

from concurrent.futures import ThreadPoolExecutor

from tidegate.errors import AskedWrongly
from tidegate.spark.batch.checkpoint import RESTORING, Checkpoint
from tidegate.spark.savepoint.contents import Item
from tidegate.spark.savepoint.copy import copy_one
from tidegate.spark.savepoint.index import Copied, Savepoint, read_index
from tidegate.spark.state.files import Durable, Missing
from tidegate.spark.state.location import location_of

_AT_ONCE = 4


def origin_of(savepoint: str | None, checkpoint: Durable) -> Savepoint | None:
    """The savepoint that a start on this checkpoint begins with; None: it goes on with its own.

    A savepoint acts once: when the checkpoint has begun, it is no longer looked at. So a restart by
    the same program goes on with what it did since.
    """
    begun = Checkpoint(checkpoint).description() is not None
    if savepoint is None or begun:
        return None
    found = read_index(location_of(savepoint))
    before = _restoring(checkpoint)
    if before is None:
        Checkpoint(checkpoint).refuse_leftovers()
    if before is not None and before != found.made_s:
        raise AskedWrongly(
            f"the checkpoint {checkpoint.url} was about to be made of another savepoint; give that "
            "one, or a new directory as checkpoint="
        )
    return found


def restore(savepoint: Savepoint, checkpoint: Durable) -> None:
    """Copy a savepoint into a new checkpoint, which this driver owns; every byte is checked."""
    source = Durable(savepoint.url)
    checkpoint.make()
    checkpoint.write_json(RESTORING, {"savepoint": savepoint.url, "made_s": savepoint.made_s})

    def one(file: Copied) -> None:
        folder, _, name = file.path.rpartition("/")
        copy_one(source, checkpoint, Item(folder, name), file)

    for folder in sorted({file.path.rpartition("/")[0] for file in savepoint.files}):
        (checkpoint.below(folder) if folder else checkpoint).make()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(one, savepoint.files):
            pass
    Checkpoint(checkpoint).redescribe(dict(savepoint.description), None)
    checkpoint.remove(RESTORING)


def _restoring(checkpoint: Durable) -> float | None:
    """When the savepoint was made that a start has begun to copy here; None if none has."""
    try:
        return float(checkpoint.read_json(RESTORING)["made_s"])
    except Missing:
        return None
