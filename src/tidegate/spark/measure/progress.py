"""Spark's report about a micro-batch, as a frozen record with units in its names."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """How far a batch read one partition of a source, and how far that was written."""

    source: int
    """The number of its source in the query."""
    topic: str
    partition: int
    start: int | None
    """The first offset that the batch read; None in a query's first batch, which has no start."""
    end: int
    latest: int
    """The offset after the last row that there was when the batch was planned."""

    @property
    def behind(self) -> int:
        """Rows that the batch left."""
        return max(self.latest - self.end, 0)

    @property
    def taken(self) -> int:
        """Rows that the batch took; 0 where its start is not told."""
        return 0 if self.start is None else max(self.end - self.start, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress:
    """One micro-batch: how many rows it had, how long it took, and what took the time."""

    batch_id: int
    rows: int
    arrival_rate: float
    """Rows per second since the batch before began."""
    processed_rate: float
    """Rows per second of this batch's duration."""
    start_us: int
    """When the trigger began, since the epoch."""
    duration_s: float
    """The whole trigger; the parts below add up to it."""
    offsets_s: float
    """Asking the sources how far they are."""
    planning_s: float
    """Making the physical plan."""
    reading_s: float
    """Asking the sources for the batch (their tasks run in the work)."""
    work_s: float
    """Running the stages and the sink."""
    log_s: float
    """Writing the offsets before the work, and the commit after it."""
    other_s: float
    """Time that Spark attributes to no part."""
    state_s: float | None = None
    """Core seconds in which its tasks wrote their state; None for a query without state."""
    behind_rows: int = 0
    """Rows that its sources had when it was planned and that it left for later batches, where they
    tell (Kafka's offsets do)."""
    partitions: tuple[PartitionOffsets, ...] = ()
    """The partitions of sources that tell offsets by topic and partition, as Kafka does."""
    channel_rows: int = 0
    """How many of its rows came from channels."""
    channel_offsets: tuple[tuple[int, int], ...] = ()
    """For each source that is a channel, in the order of the query's sources: the first of the
    writer's batches that it took, and the one after the last."""

    @property
    def end_us(self) -> int:
        """When the batch was over, since the epoch."""
        return self.start_us + round(self.duration_s * 1e6)


def batch_progress(report: str | Mapping[str, Any]) -> BatchProgress | None:
    """The batch that a progress report (or its JSON) is about; `None` when no batch ran.

    A trigger that found nothing to do reports as well, under the id of the next batch. A batch
    during which the wall clock was set back is left out, because its duration is not known.
    """
    document = json.loads(report) if isinstance(report, str) else report
    parts_ms: Mapping[str, int] = document["durationMs"]
    if "addBatch" not in parts_ms or min(parts_ms.values()) < 0:
        return None

    def seconds(*names: str) -> float:
        return sum(parts_ms.get(name, 0) for name in names) / 1000.0

    offsets_s = seconds("latestOffset", "getOffset")
    planning_s = seconds("queryPlanning")
    reading_s = seconds("getBatch")
    work_s = seconds("addBatch")
    log_s = seconds("walCommit", "commitOffsets")
    duration_s = seconds("triggerExecution")
    known_s = offsets_s + planning_s + reading_s + work_s + log_s
    rows = int(document["numInputRows"])
    sources: Sequence[Mapping[str, Any]] = document.get("sources") or ()
    started = datetime.fromisoformat(document["timestamp"])
    return BatchProgress(
        batch_id=int(document["batchId"]),
        rows=rows,
        arrival_rate=_finite(document.get("inputRowsPerSecond")),
        processed_rate=rows / duration_s if duration_s > 0 else 0.0,
        start_us=round(started.timestamp() * 1000) * 1000,
        duration_s=duration_s,
        offsets_s=offsets_s,
        planning_s=planning_s,
        reading_s=reading_s,
        work_s=work_s,
        log_s=log_s,
        other_s=max(duration_s - known_s, 0.0),
        state_s=_state_s(document.get("stateOperators") or ()),
        behind_rows=sum(_behind(source) for source in sources),
        partitions=tuple(
            one for number, source in enumerate(sources) for one in _partitions(number, source)
        ),
        channel_rows=sum(
            int(source.get("numInputRows") or 0)
            for source in sources
            if _batches(source.get("endOffset")) is not None
        ),
        channel_offsets=_channel_offsets(sources),
    )


def _state_s(operators: Sequence[Mapping[str, Any]]) -> float | None:
    """What the commits of all state operators took, added up over their tasks as Spark does it."""
    told = [operator.get("commitTimeMs") for operator in operators]
    known = [float(took) for took in told if isinstance(took, int | float) and took >= 0]
    return sum(known) / 1000.0 if known else None


def _behind(source: Mapping[str, Any]) -> int:
    """Rows between the end of a batch and the newest offset.

    By topic and partition, or else by the mean over partitions that a source has in its metrics.
    """
    latest, end = (_offsets(source.get(name)) for name in ("latestOffset", "endOffset"))
    if latest:
        return sum(max(offset - end[place], 0) for place, offset in latest.items() if place in end)
    metrics = source.get("metrics")
    if not end or not isinstance(metrics, Mapping):
        return 0
    try:
        mean = float(metrics.get("avgOffsetsBehindLatest", 0.0))
    except (TypeError, ValueError):
        return 0
    return round(mean * len(end)) if mean > 0.0 and math.isfinite(mean) else 0


def _partitions(number: int, source: Mapping[str, Any]) -> list[PartitionOffsets]:
    """The partitions of one source, in the order of their numbers."""
    latest, end, start = (
        _offsets(source.get(name)) for name in ("latestOffset", "endOffset", "startOffset")
    )
    places = sorted(
        (topic, int(partition), (topic, partition))
        for topic, partition in end
        if (topic, partition) in latest and partition.isdecimal()
    )
    return [
        # A partition that came since the last batch is read from its beginning.
        PartitionOffsets(
            number,
            topic,
            partition,
            start.get(place, 0 if start else None),
            end[place],
            latest[place],
        )
        for topic, partition, place in places
    ]


def _offsets(told: Any) -> dict[tuple[str, str], int]:
    """Offsets by topic and partition; empty for a source whose offsets are of another form."""
    if isinstance(told, str):
        try:
            told = json.loads(told)
        except ValueError:
            return {}
    if not isinstance(told, dict):
        return {}
    return {
        (topic, partition): offset
        for topic, partitions in told.items()
        if isinstance(partitions, dict)
        for partition, offset in partitions.items()
        if isinstance(offset, int)
    }


def _channel_offsets(sources: Iterable[Mapping[str, Any]]) -> tuple[tuple[int, int], ...]:
    """The offsets of those sources that are channels: they count the writer's batches."""
    found = []
    for source in sources:
        begin, end = (_batches(source.get(name)) for name in ("startOffset", "endOffset"))
        if end is not None:
            found.append((begin or 0, end))
    return tuple(found)


def _batches(offset: Any) -> int | None:
    """The number in an offset of a channel; None for one of another kind of source."""
    if isinstance(offset, Mapping) and set(offset) == {"batches"}:
        return int(offset["batches"])
    return None


def _finite(value: Any) -> float:
    """Spark leaves a rate out, or reports "NaN", for the first batch."""
    return float(value) if isinstance(value, int | float) and value == value else 0.0
