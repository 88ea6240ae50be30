"""A run as Flink-ER draws it: throughput, latency and rows waiting, a sample for every minute."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.control.record import Record
from tidegate.papers.flink_er.done_batches import DoneBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """One sample; `at` is the minute at whose end it was taken."""

    at: int
    rows_per_s: float
    """Rows of the source that were completed. Those of a batch count evenly over its gap, because
    its tasks work on them all the time."""
    latency_s: float | None
    """Mean sojourn of the rows whose batches ended; None if no batch with rows ended."""
    waiting_rows: float
    """Rows that have arrived and are not completed, at the end of the minute."""
    cores: int
    """Cores at the end of the minute."""
    occupied: float
    """The share of the time of these cores in which operators were at work or stretched; it counts
    as rows do."""


def minutes_of(
    records: Sequence[Record], batches: Sequence[DoneBatch], minute_s: float, count: int
) -> list[Minute]:
    """The first minutes of a run. Rows arrive from the moment at which its first batch began."""
    if not batches:
        return []
    begun_s = batches[0].began_s
    edges_s = begun_s + minute_s * np.arange(count + 1, dtype=np.float64)
    ended_s = np.array([begun_s, *(batch.ended_s for batch in batches)])
    rows = _each_minute([batch.rows for batch in batches], ended_s, edges_s)
    busy_s = _each_minute([batch.busy_s for batch in batches], ended_s, edges_s)
    found = []
    for number, low_s in enumerate(edges_s[:-1].tolist()):
        high_s = low_s + minute_s
        ticks = [one.measurement for one in records if low_s <= one.measurement.at_s < high_s]
        cores = ticks[-1].cores_granted if ticks else 0
        found.append(
            Minute(
                at=number + 1,
                rows_per_s=rows[number] / minute_s,
                latency_s=mean_latency_s(
                    [batch for batch in batches if low_s <= batch.ended_s < high_s]
                ),
                waiting_rows=ticks[-1].backlog_rows if ticks else 0.0,
                cores=cores,
                occupied=busy_s[number] / (cores * minute_s) if cores else 0.0,
            )
        )
    return found


def _each_minute(
    values: Sequence[float], ended_s: npt.NDArray[np.float64], edges_s: npt.NDArray[np.float64]
) -> list[float]:
    """What batches did in each minute: it counts evenly over the gap of a batch."""
    done = np.concatenate([[0.0], np.cumsum(values)])
    each: list[float] = np.diff(np.interp(edges_s, ended_s, done)).tolist()
    return each


def mean_latency_s(batches: Sequence[DoneBatch]) -> float | None:
    """The mean sojourn over the rows of some batches; None if they have none."""
    told = [
        (batch.rows, batch.latency_s)
        for batch in batches
        if batch.latency_s is not None and batch.rows > 0
    ]
    rows = sum(count for count, _ in told)
    return sum(count * latency_s for count, latency_s in told) / rows if told else None
