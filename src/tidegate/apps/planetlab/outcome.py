"""What happened in one run of the queries."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.apps.application import Verdict
from tidegate.apps.planetlab.ages import AgeCounts, ResultAges
from tidegate.control.record import Record
from tidegate.control.row_counts import SourceCount
from tidegate.view.figures import rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class Planetlab:
    """What happened in one run."""

    queries: int
    records: list[Record]
    judged_from_s: float
    """When the warm-up was over; earlier ticks and batches are not judged."""
    counts: SourceCount
    """Rows offered, kept and shed; its classes are the nodes."""
    kept_per_query: tuple[int, ...]
    """Rows that each query has averaged, by its own count."""
    ages: ResultAges
    """How old rows and results were when they were there."""
    cpu_percent: float | None
    """CPU use of the application with Spark, in per cent of one core; None where it is not told."""
    verdict: Verdict
    """Whether the answers of all queries are those of the kept rows."""

    @property
    def judged(self) -> list[Record]:
        """The records after the warm-up."""
        return [one for one in self.records if one.measurement.at_s >= self.judged_from_s]

    @property
    def mean_latency_s(self) -> float:
        """Mean latency over all rows that were completed after the warm-up."""
        return self.ages.rows.mean_s

    @property
    def latency_s(self) -> tuple[tuple[float, float], ...]:
        """Seconds since the first tick, and the mean latency then, over the whole run."""
        if not self.records:
            return ()
        begun_s = self.records[0].measurement.at_s
        return tuple(
            (one.measurement.at_s - begun_s, one.measurement.latency.mean_s)
            for one in self.records
            if one.measurement.latency is not None
        )

    @property
    def kept_share(self) -> float:
        """The share of the rows that was kept after the warm-up."""
        counted = [count for one in self.judged for count in one.measurement.sources]
        offered = sum(count.offered for count in counted)
        return sum(count.kept for count in counted) / offered if offered else math.nan

    @property
    def kept_rate(self) -> float:
        """Rows per second that were kept after the warm-up."""
        judged = self.judged
        if len(judged) < 2:
            return math.nan
        kept = sum(count.kept for one in judged[1:] for count in one.measurement.sources)
        return kept / (judged[-1].measurement.at_s - judged[0].measurement.at_s)

    @property
    def tasks_busy(self) -> float:
        """Tasks at work on average after the warm-up, those that wait included."""
        busy = [one.measurement.cores_busy for one in self.judged]
        told = [one for one in busy if one is not None]
        return float(np.mean(told)) if told else math.nan

    def document(self) -> dict[str, Any]:
        """The figures, for a table or a JSON document."""
        last_s = self.latency_s[-1][1] if self.latency_s else None
        return {
            "queries": self.queries,
            "mean_latency_s": rounded(self.mean_latency_s, 3),
            "last_latency_s": rounded(last_s, 3),
            "ages": {
                "rows": _spread(self.ages.rows),
                "oldest_new_row_of_a_result": _spread(self.ages.newest_part),
                "oldest_row_of_a_result": _spread(self.ages.oldest),
            },
            "cpu_percent": rounded(self.cpu_percent, 1),
            "tasks_busy": rounded(self.tasks_busy, 2),
            "kept_share": rounded(self.kept_share, 3),
            "offered": self.counts.offered,
            "kept": self.counts.kept,
            "shed": self.counts.shed,
            "nodes": {
                part.name: {"offered": part.offered, "kept": part.kept, "shed": part.shed}
                for part in self.counts.classes
            },
            "per_query": [
                {"query": query, "kept": kept, "shed": self.counts.offered - kept}
                for query, kept in enumerate(self.kept_per_query)
            ],
            "verified": self.verdict.correct,
            "verdict": self.verdict.said,
            **{name: rounded(value, 3) for name, value in self.verdict.figures.items()},
        }


def _spread(ages: AgeCounts) -> dict[str, float | None]:
    """Mean and percentiles in seconds."""
    return {
        "mean_s": rounded(ages.mean_s, 3),
        **{f"p{percent}_s": rounded(ages.percentile_s(percent), 3) for percent in (50, 95, 99)},
    }
