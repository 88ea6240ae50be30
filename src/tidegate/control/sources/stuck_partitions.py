"""Finds partitions that nothing is read from although they grow, while others are read.

More cores do not help such a partition. Its rows are therefore no part of the backlog that cores
are planned for, until it moves again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tidegate.control.lag import PartitionLag

STUCK_S = 10.0
"""A partition is stuck if nothing was read from it for so long, and for some batches."""
STUCK_BATCHES = 3


@dataclass(slots=True)
class _Silence:
    """The time since a partition was last read, while it had rows and others were read."""

    since_s: float
    behind_rows: int
    batches: int = 0
    stuck: bool = False


class StuckPartitions:
    """Sees the partitions of one query tick by tick, in time order."""

    def __init__(self) -> None:
        self._silent: dict[tuple[str, int], _Silence] = {}

    def marked(
        self, partitions: Sequence[PartitionLag], batches: int, at_s: float
    ) -> tuple[PartitionLag, ...]:
        """The partitions of a tick in which so many batches ended, stuck ones marked.

        A tick without a batch tells nothing new.
        """
        read = any(one.taken_rows > 0 for one in partitions)
        for one in partitions if batches else ():
            place = (one.topic, one.partition)
            if one.taken_rows > 0 or one.behind_rows <= 0:
                self._silent.pop(place, None)
                continue
            silence = self._silent.setdefault(place, _Silence(at_s, one.behind_rows))
            if not read:
                # Nothing is read anywhere: the query is slow or limited, not this partition.
                silence.since_s, silence.behind_rows, silence.batches = at_s, one.behind_rows, 0
                continue
            silence.batches += batches
            silence.stuck = (
                at_s - silence.since_s >= STUCK_S
                and silence.batches >= STUCK_BATCHES
                and one.behind_rows > silence.behind_rows
            ) or silence.stuck
        self._silent = {
            place: silence
            for place, silence in self._silent.items()
            if any(place == (one.topic, one.partition) for one in partitions)
        }
        return tuple(replace(one, stuck=self._stuck(one)) for one in partitions)

    def _stuck(self, one: PartitionLag) -> bool:
        silence = self._silent.get((one.topic, one.partition))
        return silence is not None and silence.stuck
