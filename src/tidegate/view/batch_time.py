"""What the time of a run's batches went to, by segment; a segment of foreign queries is a query.

First batches load and compile code. They are told apart, so that they do not hide how long a batch
usually takes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate.control.batch_parts import (
    ADD_UP,
    COMMIT,
    LOG,
    OFFSETS,
    OTHER,
    OWN_PLAN,
    PLANNING,
    SLOWEST,
    STAGES,
    STARTING,
    STATE,
)
from tidegate.control.learning.outliers import COLD, FIRST
from tidegate.control.measurement import BatchMeasurement, Measurement
from tidegate.control.record import Record
from tidegate.units import format_duration
from tidegate.view.figures import milliseconds, rounded

_PART_WORDS: Mapping[str, str] = {
    OFFSETS: "asking the sources",
    PLANNING: "Spark's planning",
    LOG: "Spark's logs of offsets and commits",
    OWN_PLAN: "Tidegate's own plan",
    STAGES: "scheduling stages and moving rows between them",
    STARTING: "starting tasks",
    SLOWEST: "the slowest task of each stage",
    COMMIT: "the commit",
    OTHER: "what nobody tells about",
}
_LEAST_SHARE = 0.005
"""Parts below half a percent are not said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentTime:
    """The batches of one segment, without the first ones unless there are no others."""

    segment: str
    foreign: bool
    """Whether it is a query that is not ours: nothing is known of its operators."""
    batches: int
    rows: int
    mean_s: float
    """Mean duration of a batch."""
    longest_s: float
    first_batches: int
    """How many batches loaded and compiled code; they are no part of the other numbers."""
    first_s: float
    """Their mean duration."""
    trigger_s: float
    parts: Mapping[str, float]
    """What the time went to, as shares of it (`control/batch_parts.py`), largest first."""
    cores: float
    """Mean number of cores that a batch could use."""
    busy: float | None
    """Mean number of cores that its tasks kept busy while a batch ran; None where not told."""
    state: float | None
    """The share of its tasks' time that wrote state; None where not told."""
    limit_rows: int | None
    """Rows that one batch may take from its source; None: no limit is known."""
    limited: int
    """How many batches took all that they may."""

    @property
    def rows_a_batch(self) -> float:
        """Mean number of rows of a batch."""
        return self.rows / max(self.batches, 1)

    @property
    def took(self) -> str:
        """How long its batches took, in one sentence."""
        who = f"Query `{self.segment}`" if self.foreign else f"Segment `{self.segment}`"
        many = "1 batch" if self.batches == 1 else f"{self.batches:,d} batches"
        found = (
            f"{who}: {many} of {self.rows_a_batch:,.0f} rows took {format_duration(self.mean_s)} on"
            f" average, {format_duration(self.longest_s)} at most"
        )
        if self.trigger_s > 0.0:
            found += f", one every {format_duration(self.trigger_s)}"
        return f"{found}."

    @property
    def began(self) -> str:
        """How long the first batches took, which are left out of the rest; empty without any."""
        if not self.first_batches:
            return ""
        took = f"took {format_duration(self.first_s)}"
        if self.first_batches == 1:
            return f"The first one, which loaded and compiled code, {took} and is left out."
        return (
            f"The first {self.first_batches}, which loaded and compiled code, {took} on average and"
            " are left out."
        )

    @property
    def went_to(self) -> str:
        """What the time went to, in one or two sentences; empty where that is not told."""
        said = [
            f"{share:.0%} {_words(part, foreign=self.foreign)}"
            for part, share in self.parts.items()
            if share >= _LEAST_SHARE
        ]
        found = f"Of that time: {', '.join(said)}." if said else ""
        if self.busy is not None:
            state = "" if not self.state else f", and wrote state in {self.state:.0%} of their time"
            found += f" Its tasks kept {self.busy:.1f} of {self.cores:.1f} cores busy{state}."
        return found.strip()

    @property
    def limit(self) -> str:
        """What its read limit did, in one sentence; empty without a limit."""
        if self.limit_rows is None:
            return ""
        if not self.limited:
            return f"Its read limit of {self.limit_rows:,d} rows a batch was never reached."
        return (
            f"{self.limited:,d} of its batches took all of the read limit of"
            f" {self.limit_rows:,d} rows."
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """Everything that is said of it."""
        return tuple(one for one in (self.took, self.went_to, self.began, self.limit) if one)

    def document(self) -> dict[str, Any]:
        """For JSON: durations in milliseconds, parts and state as fractions."""
        return {
            "segment": self.segment,
            "foreign": self.foreign,
            "batches": self.batches,
            "rows": self.rows,
            "mean_ms": milliseconds(self.mean_s),
            "longest_ms": milliseconds(self.longest_s),
            "first_batches": self.first_batches,
            "first_mean_ms": milliseconds(self.first_s) if self.first_batches else None,
            "trigger_ms": milliseconds(self.trigger_s),
            "parts": {part: round(share, 4) for part, share in self.parts.items()},
            "cores": round(self.cores, 2),
            "cores_busy": rounded(self.busy, 2),
            "state_share": rounded(self.state, 4),
            "read_limit_rows": self.limit_rows,
            "batches_at_read_limit": self.limited,
        }


def _words(part: str, *, foreign: bool) -> str:
    """A part in words. Of a query that is not ours, the stages are told with their tasks."""
    return "tasks and the sink" if foreign and part == STAGES else _PART_WORDS[part]


def batches_by_segment(records: Sequence[Record]) -> tuple[SegmentTime, ...]:
    """The batches of each segment that ended some, the longest mean duration first."""
    found: dict[str, list[BatchMeasurement]] = {}
    newest: dict[str, Measurement] = {}
    limits: dict[str, int] = {}
    for record in records:
        for segment in record.measurement.segments:
            found.setdefault(segment.name, []).extend(segment.batches)
            newest[segment.name] = record.measurement
            if segment.lag is not None and segment.lag.limit_rows is not None:
                limits[segment.name] = segment.lag.limit_rows
    told = [
        _told(name, batches, newest[name], limits.get(name))
        for name, batches in found.items()
        if any(batch.rows > 0 for batch in batches)
    ]
    return tuple(sorted(told, key=lambda one: -one.mean_s))


def _told(
    name: str, batches: Sequence[BatchMeasurement], newest: Measurement, limit_rows: int | None
) -> SegmentTime:
    with_rows = [batch for batch in batches if batch.rows > 0]
    warm = [batch for batch in with_rows if batch.outlier not in (FIRST, COLD)] or with_rows
    first = [batch for batch in batches if batch.outlier in (FIRST, COLD)]
    first = [] if warm is with_rows else first
    lasted_s = sum(batch.duration_s for batch in warm)
    parts = {part: sum(batch.parts_s.get(part, 0.0) for batch in warm) for part in ADD_UP}
    whole_s = sum(parts.values())
    busy = [batch for batch in warm if batch.busy_s is not None]
    busy_s = sum(batch.busy_s or 0.0 for batch in busy)
    state = [batch.parts_s[STATE] for batch in busy if STATE in batch.parts_s]
    segment = next(one for one in newest.segments if one.name == name)
    return SegmentTime(
        segment=name,
        foreign=not any(operator.segment == name for operator in newest.operators),
        batches=len(warm),
        rows=sum(batch.rows for batch in warm),
        mean_s=lasted_s / len(warm),
        longest_s=max(batch.duration_s for batch in warm),
        first_batches=len(first),
        first_s=sum(batch.duration_s for batch in first) / max(len(first), 1),
        trigger_s=segment.trigger_s,
        parts={
            part: took_s / whole_s
            for part, took_s in sorted(parts.items(), key=lambda pair: -pair[1])
            if took_s > 0.0
        },
        cores=sum(batch.tasks * batch.duration_s for batch in warm) / max(lasted_s, 1e-9),
        busy=busy_s / max(sum(batch.duration_s for batch in busy), 1e-9) if busy else None,
        state=sum(state) / busy_s if state and busy_s > 0.0 else None,
        limit_rows=limit_rows,
        limited=sum(
            limit_rows is not None and batch.rows + batch.shed_rows >= limit_rows for batch in warm
        ),
    )
