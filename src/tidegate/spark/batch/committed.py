"""What an earlier run has committed: our manifests and Spark's own logs must agree.

Spark logs the offsets of a batch before it runs, and its commit after our manifest. So the newest
manifest lies between the two. Where it does not, a part of the checkpoint was lost, or comes from
another copy. A start is then refused, because to go on would reset state or skip rows.
"""

from collections.abc import Callable

from tidegate.errors import TidegateError
from tidegate.pipelines.graph import Segment
from tidegate.spark.batch.channel import Log
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.state.manifest import Manifests


def newest_committed(segment: Segment, checkpoint: Checkpoint) -> int | None:
    """The newest committed batch of a segment; None if there is none. Nothing is written."""
    newest = newest_batch(checkpoint, segment.name, lambda: _refuse_leftovers(segment, checkpoint))
    return newest if newest >= 0 else None


def newest_batch(
    checkpoint: Checkpoint, segment: str, when_new: Callable[[], None] = lambda: None
) -> int:
    """The newest committed batch of a segment by its name; -1 if there is none.

    `when_new` is called where no batch was ever begun.
    """
    folder = checkpoint.segment(segment)
    manifests = Manifests(folder.below("manifests"), checkpoint.states)
    listed = manifests.committed()
    newest = listed[-1] if listed else -1
    begun = _newest_entry(checkpoint, segment, "offsets")
    done = _newest_entry(checkpoint, segment, "commits")
    # A listing may lag behind, so what it leaves out is asked for by name, from the newest batch on
    # that any listing shows: the oldest batches may have been removed, so none begins with batch 0.
    last = max(newest, begun, done)
    while folder.below("spark/offsets").exists(str(last + 1)):
        last += 1
    if last > begun and folder.below("spark/offsets").exists(str(last)):
        begun = last
    # Spark begins a batch when the one before it is done.
    for batch_id in (begun, begun - 1):
        if newest < batch_id and manifests.exists(batch_id):
            newest = batch_id
    if newest == begun == -1:
        when_new()
    if newest < done:
        raise TidegateError(
            f"segment '{segment}' has committed batch {done}, but its manifest "
            f"{manifests.directory.path('')}{done:010d}.json, which names its state, is missing; "
            "nothing was changed; restore the directory from a copy of the checkpoint, or start "
            "afresh with a new checkpoint"
        )
    if newest > begun:
        raise TidegateError(
            f"the state of segment '{segment}' is that after batch {newest}, but Spark's "
            f"offsets in {folder.url}/spark end at batch {begun}; nothing was changed; restore "
            "both from the same copy of the checkpoint, or start afresh with a new one"
        )
    return newest


def lay_baseline(checkpoint: Checkpoint) -> None:
    """Give segments of a checkpoint that have committed batches without a manifest an empty one.

    Earlier versions of Tidegate wrote none in a segment without state. Call this before the
    checkpoint's description is changed: it says which segments had state.
    """
    found = checkpoint.description() or {"segments": {}}
    for name, keyed in found["segments"].items():
        done = _newest_entry(checkpoint, name, "commits")
        manifests = Manifests(checkpoint.segment(name).below("manifests"), checkpoint.states)
        if not keyed and done >= 0 and not manifests.committed():
            manifests.directory.make()
            manifests.commit(done, {})


def _refuse_leftovers(segment: Segment, checkpoint: Checkpoint) -> None:
    """Refuse a segment that has never begun a batch, but has state or has filled a channel."""
    states = [checkpoint.state(operator.name) for operator in segment.keyed]
    logs = [Log(checkpoint.channel(write.channel.name)) for write in segment.writes]
    found = [state.url for state in states if state.names()]
    found += [log.directory.url for log in logs if log.length()]
    if found:
        raise TidegateError(
            f"the directory {checkpoint.segment(segment.name).url} is missing or empty, but "
            f"{found[0]} has files of earlier batches of that segment; nothing was changed; "
            "restore it from a copy of the checkpoint, or start afresh with a new checkpoint"
        )


def _newest_entry(checkpoint: Checkpoint, segment: str, log: str) -> int:
    """The newest batch in one of Spark's logs of a segment; -1 if there is none."""
    names = checkpoint.segment(segment).below(f"spark/{log}").names()
    return max((int(name) for name in names if name.isdigit()), default=-1)
