"""What a simulated run came to."""

import itertools
from dataclasses import dataclass

from tidegate.control.measurement import Latency
from tidegate.control.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A run: its records, and what it came to."""

    records: tuple[Record, ...]
    sojourns: tuple[Latency | None, ...]
    """Of the rows completed in each tick."""
    cores: tuple[int, ...]
    """Granted in each tick."""
    core_seconds: float
    rows: float
    """Completed."""
    shed: float
    """Dropped before the first stage."""
    moves: int

    def within(self, target_s: float, *, after_s: float = 0.0) -> float:
        """Share of ticks, with rows completed, whose mean sojourn was within the target."""
        begin_s = self.records[0].measurement.at_s + after_s
        judged = [
            latency.mean_s <= target_s
            for record, latency in zip(self.records, self.sojourns, strict=True)
            if latency is not None and record.measurement.at_s >= begin_s
        ]
        return sum(judged) / max(len(judged), 1)

    def changes(self) -> list[int]:
        """Cores asked for, one entry per change: +n out, -n in."""
        asked = [record.measurement.cores_asked for record in self.records]
        return [b - a for a, b in itertools.pairwise(asked) if a != b]

    def reversals(self) -> int:
        """Changes of direction."""
        signs = [change > 0 for change in self.changes()]
        return sum(a != b for a, b in itertools.pairwise(signs))
