"""Older versions of a segment: what they need beside their state, and which of them go.

Spark forgets the offsets of a batch after a hundred more, and plans and counts go earlier. A
version without them could be read, but no pipeline could go on from it. So they are copied when a
version is kept for longer than a restart needs it. All of this is done behind the batches.
"""

from contextlib import suppress
from dataclasses import dataclass, field

from tidegate.spark.state.files import Durable, Missing
from tidegate.spark.state.kept_versions import KeptVersions
from tidegate.spark.state.manifest import KEPT, Manifests


def older(segment: Durable, batch_id: int) -> Durable:
    """The directory with what belongs to an older version of a segment."""
    return segment.below(f"older/{batch_id:010d}")


def tidy_older(segment: Durable, manifests: Manifests) -> None:
    """Remove what belongs to versions that are gone, as after a start that keeps fewer."""
    names = segment.below("older").directories()
    if not names:
        return
    there = set(manifests.committed())
    for name in names:
        if name.isdigit() and int(name) not in there:
            folder = older(segment, int(name))
            folder.remove_all(folder.names())


@dataclass(slots=True)
class OlderVersions:
    """Keeps and removes the older versions of one segment."""

    segment: Durable
    manifests: Manifests
    rule: KeptVersions
    _at_us: dict[int, int | None] = field(default_factory=dict)
    """The clocks of the versions that were looked at."""
    _saved: set[int] = field(default_factory=set)
    """The versions whose offsets are known to be copied."""

    def clean(self, batch_id: int) -> None:
        """After a batch, save what the kept versions need, and remove the others.

        A driver that was paused may clean up while its successor does. What the one has removed is
        missing to the other, which then leaves the rest to the next cleaning.
        """
        with suppress(Missing):
            self._clean(batch_id)

    def _clean(self, batch_id: int) -> None:
        committed = [batch for batch in self.manifests.committed() if batch <= batch_id]
        for batch in committed:
            if batch not in self._at_us:
                self._at_us[batch] = self.manifests.at_us(batch)
        at_us = {batch: self._at_us[batch] for batch in committed}
        kept = self.rule.of(at_us)
        for batch in sorted(kept):
            if batch <= batch_id - KEPT and batch not in self._saved:
                self._save(batch)
        self.manifests.thin(committed, kept, batch_id)
        for batch in set(committed) - kept:
            folder = older(self.segment, batch)
            folder.remove_all(folder.names())
            self._at_us.pop(batch, None)
            self._saved.discard(batch)

    def _save(self, batch: int) -> None:
        """Copy the offsets, the plan and the counts of a version, if they are still there."""
        folder, done = older(self.segment, batch), "complete"
        if not folder.exists(done):
            folder.make()
            for log in ("offsets", "commits"):
                for number in (batch - 1, batch):
                    _copy(
                        self.segment.below(f"spark/{log}"), str(number), folder, f"{log}-{number}"
                    )
            for kind in ("plans", "counts"):
                source = self.segment.below(kind)
                names = [name for name in source.names() if name.startswith(f"{batch:010d}")]
                for name in names:
                    _copy(source, name, folder, f"{kind}-{name}")
            folder.write(done, b"")
        self._saved.add(batch)


def _copy(source: Durable, name: str, target: Durable, new: str) -> None:
    try:
        target.write(new, source.read(name))
    except Missing:  # there was no batch before the first one, for instance
        return
