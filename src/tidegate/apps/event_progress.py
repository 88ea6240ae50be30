"""How far the event time of a run came, and which windows must therefore be closed.

A verifier compares every window, whether it was emitted or is still open. If nothing were ever
closed, all windows would be open and right. So it also has to know which ones may still be open: a
window is closed in the first micro-batch that begins after an event past its end.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from tidegate.spark.batch.checkpoint import Checkpoint, require_description
from tidegate.spark.batch.kept_names import KeptNames
from tidegate.spark.state.files import Durable
from tidegate.spark.state.manifest import Manifests


@dataclass(frozen=True, slots=True)
class EventProgress:
    """The newest events that a keyed operator has seen, in microseconds; None: none."""

    newest_us: int | None
    before_us: int | None
    """The newest one before its last micro-batch."""

    @classmethod
    def of(cls, checkpoint: str, operator: str) -> Self:
        """What a checkpoint says about an operator of a stopped pipeline."""
        place = Checkpoint(Durable(checkpoint))
        description = require_description(place)
        segment = next(s for s, names in description["segments"].items() if operator in names)
        manifests = Manifests(place.segment(segment).below("manifests"), place.states)
        kept = KeptNames.of(description).kept(operator)
        found = [
            manifests.load(batch).versions[kept].newest_event_us
            for batch in manifests.committed()[-2:]
        ]
        before, newest = [None, None, *found][-2:]
        return cls(newest, before)

    def faults(
        self,
        expected_us: Iterable[int],
        open_us: Iterable[int],
        *,
        every_us: int,
        size_us: int,
        delay_us: int = 0,
    ) -> list[str]:
        """What is wrong with the windows of a run, in words.

        `expected_us` has the ends of all windows that there should be, and `open_us` those of the
        windows that are still in the state.
        """
        last_us = max(expected_us, default=None)
        if last_us is None:
            return []
        newest_us = -1 if self.newest_us is None else self.newest_us
        if newest_us // every_us * every_us + size_us != last_us:
            return [
                f"event time came to {newest_us / 1e6:.15g} s, but the last window ends at"
                f" {last_us / 1e6:.15g} s"
            ]
        if self.before_us is None:
            return []
        late = {end_us for end_us in open_us if end_us + delay_us <= self.before_us}
        if not late:
            return []
        return [
            f"windows were not closed at {len(late)} times that had passed before the last"
            f" micro-batch, the first at {min(late) / 1e6:.15g} s"
        ]
