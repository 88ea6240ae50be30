"""How many cores a run asked for, had and used, in a sentence; in executors where it scales those.

Spark grants whole executors, so a person who runs queries on a cluster counts in these.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.control.record import Record
from tidegate.units import format_duration
from tidegate.view.figures import rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class CoresUsed:
    """Cores over a whole run."""

    asked: tuple[int, int]
    """The fewest and the most that were asked for."""
    granted: tuple[int, int]
    """The fewest and the most that were there."""
    mean_granted: float
    mean_busy: float | None
    """Mean number at work, over the ticks that tell it; None where none does."""
    grant_s: float | None
    """Median time until cores were granted; None where it was never observed."""
    per_executor: int

    @property
    def words(self) -> str:
        """One sentence."""
        unit = "cores" if self.per_executor == 1 else f"executors of {self.per_executor} cores"
        asked, granted = (_span(pair, self.per_executor) for pair in (self.asked, self.granted))
        mean = self.mean_granted / self.per_executor
        found = f"{asked} {unit} were asked for, {granted} were there"
        if self.granted[0] != self.granted[1]:
            found += f" ({mean:.1f} on average)"
        if self.mean_busy is not None:
            found += f", {self.mean_busy / self.per_executor:.1f} were busy on average"
        if self.grant_s:
            found += f"; new ones took {format_duration(self.grant_s)} to come"
        return f"{found}."

    def document(self) -> dict[str, Any]:
        """For JSON, in cores."""
        return {
            "asked": list(self.asked),
            "granted": list(self.granted),
            "mean_granted": round(self.mean_granted, 2),
            "mean_busy": rounded(self.mean_busy, 2),
            "grant_s": rounded(self.grant_s, 3),
            "per_executor": self.per_executor,
        }


def cores_used(records: Sequence[Record]) -> CoresUsed:
    """The cores of these records, of which there is at least one."""
    ticks = [record.measurement for record in records]
    spans_s = np.array([tick.interval_s for tick in ticks])
    weights = spans_s if spans_s.sum() > 0.0 else np.ones(len(ticks))
    told = [tick for tick in ticks if tick.cores_busy is not None]
    # It is measured over batches, which may have begun before cores were released.
    busy_s = sum(min(tick.cores_busy or 0.0, tick.cores_granted) * tick.interval_s for tick in told)
    told_s = sum(tick.interval_s for tick in told)
    grants_s = [tick.grant_s for tick in ticks if tick.grant_s is not None]
    assembly = next((one.assembly for one in records if one.assembly is not None), None)
    return CoresUsed(
        asked=_range([tick.cores_asked for tick in ticks]),
        granted=_range([tick.cores_granted for tick in ticks]),
        mean_granted=float(np.average([tick.cores_granted for tick in ticks], weights=weights)),
        mean_busy=busy_s / told_s if told_s > 0.0 else None,
        grant_s=float(np.median(grants_s)) if grants_s else None,
        per_executor=int((assembly or {}).get("cores_per_executor", 1)),
    )


def _range(numbers: Sequence[int]) -> tuple[int, int]:
    return min(numbers), max(numbers)


def _span(pair: tuple[int, int], per_executor: int) -> str:
    least, most = (f"{number / per_executor:g}" for number in pair)
    return least if least == most else f"{least} to {most}"
