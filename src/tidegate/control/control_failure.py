"""What a run says while its control loop fails: since when, how often, and why.

The pipeline itself runs on. The loop tries again until it succeeds, so this is not an end.
"""

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class ControlFailure:
    """Ticks of a control loop that failed one after the other."""

    since_s: float
    """When the first of them failed, in seconds since the epoch."""
    ticks: int
    """How many failed in a row."""
    error: str
    """What the last one failed with."""
    keeps_all: bool = False
    """Whether shedding was ended, because the last decision on it is too old."""

    @property
    def words(self) -> str:
        """The failure in one sentence without its end, for a log, a view or a note."""
        since = datetime.fromtimestamp(self.since_s, UTC).strftime("%H:%M:%S UTC")
        times = "1 tick" if self.ticks == 1 else f"{self.ticks} ticks"
        shed = "; no row is shed meanwhile" if self.keeps_all else ""
        return f"control has failed since {since}, for {times} ({self.error}){shed}"
