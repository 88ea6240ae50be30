"""The result of a simulated run."""

import itertools
from dataclasses import dataclass

from tidegate.control.measurement import Latency
from tidegate.control.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The records of a simulated run, and its totals."""

    records: tuple[Record, ...]
    sojourns: tuple[Latency | None, ...]
    """Sojourn of the rows completed in each tick."""
    cores: tuple[int, ...]
    """Cores granted in each tick."""
    core_seconds: float
    rows: float
    """Rows completed."""
    shed: float
    """Rows dropped before the first stage."""
    moves: int
    """Shards moved."""

    def within(self, target_s: float, *, after_s: float = 0.0) -> float:
        """Share of the ticks with completed rows whose mean sojourn was within the target."""
        begin_s = self.records[0].measurement.at_s + after_s
        judged = [
            latency.mean_s <= target_s
            for record, latency in zip(self.records, self.sojourns, strict=True)
            if latency is not None and record.measurement.at_s >= begin_s
        ]
        return sum(judged) / max(len(judged), 1)

    def changes(self) -> list[int]:
        """Each change of the cores asked for: +n for a scale-out, -n for a scale-in."""
        asked = [record.measurement.cores_asked for record in self.records]
        return [b - a for a, b in itertools.pairwise(asked) if a != b]

    def reversals(self) -> int:
        """How often a scale-out followed a scale-in, or the reverse."""
        signs = [change > 0 for change in self.changes()]
        return sum(a != b for a, b in itertools.pairwise(signs))
