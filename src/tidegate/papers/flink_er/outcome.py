"""What one strategy came to: its minutes, its throughput at the peak, its breaks."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.control.record import Record
from tidegate.papers.flink_er.breaks import Break, breaks_of, gaps_between
from tidegate.papers.flink_er.done_batches import done_batches
from tidegate.papers.flink_er.minutes import Minute, mean_latency_s, minutes_of
from tidegate.papers.flink_er.setting import MINUTES, PEAK_FROM, TARGET_S
from tidegate.papers.flink_er.usage import MinuteUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyOutcome:
    """One run of one strategy."""

    strategy: str
    minutes: tuple[Minute, ...]
    breaks: tuple[Break, ...]
    gaps_s: tuple[float, ...]
    """All gaps between results while rows arrived."""
    peak_latency_s: float | None
    """Mean sojourn of the rows that were done while the load was at its peak, or of the next batch
    if none ended meanwhile."""
    changes: tuple[tuple[float, str], ...]
    """When tasks or cores were changed, in minutes, and to what."""
    usage: tuple[MinuteUsage, ...] = ()

    @property
    def peak_rows_per_s(self) -> float:
        """Throughput while the load was at its peak."""
        return float(np.mean([one.rows_per_s for one in self.minutes if one.at > PEAK_FROM]))

    @property
    def rows_per_s_within(self) -> float:
        """The highest throughput of a minute whose rows were within the latency constraint."""
        held = [
            one.rows_per_s
            for one in self.minutes
            if one.latency_s is not None and one.latency_s <= TARGET_S
        ]
        return max(held, default=0.0)

    @property
    def latencies_s(self) -> list[float]:
        """The latency of every minute in which results came."""
        return [one.latency_s for one in self.minutes if one.latency_s is not None]

    @property
    def most_waiting(self) -> float:
        """The most rows that waited at the end of a minute."""
        return max((one.waiting_rows for one in self.minutes), default=0.0)

    @property
    def longest_break_s(self) -> float | None:
        """The longest break at a rescale; None without any rescale."""
        return max((one.seconds for one in self.breaks), default=None)


def outcome_of(
    strategy: str,
    records: Sequence[Record],
    reader: str,
    minute_s: float,
    usage: Sequence[MinuteUsage] = (),
) -> StrategyOutcome:
    """Judge the records of a run."""
    batches = done_batches(records, reader)
    begun_s = batches[0].began_s if batches else 0.0
    peak_s, end_s = begun_s + PEAK_FROM * minute_s, begun_s + MINUTES * minute_s
    late = [one for one in batches if one.ended_s >= peak_s]
    at_peak = [one for one in late if one.ended_s < end_s] or late[:1]
    return StrategyOutcome(
        strategy=strategy,
        minutes=tuple(minutes_of(records, batches, minute_s, MINUTES)),
        breaks=tuple(one for one in breaks_of(batches) if one.at_s < end_s),
        gaps_s=tuple(gaps_between(batches, begun_s, end_s)),
        peak_latency_s=mean_latency_s(at_peak),
        changes=tuple(
            ((one.measurement.at_s - begun_s) / minute_s, _changed(one))
            for one in records
            if one.acted and (one.decision.tasks or one.decision.cores is not None)
            if one.measurement.at_s < end_s
        ),
        usage=tuple(usage[:MINUTES]),
    )


def _changed(record: Record) -> str:
    """The cores after a change, and the tasks that it gave."""
    cores = record.decision.cores or record.measurement.cores_asked
    tasks = ", ".join(f"{name} {count}" for name, count in record.decision.tasks.items())
    return f"{cores} cores ({tasks})" if tasks else f"{cores} cores"
