"""A summary of a run, from its records: latency, cores and changes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rich.table import Table

from tidegate.control.measurement import Measurement, OperatorMeasurement
from tidegate.control.record import Record
from tidegate.errors import AskedWrongly
from tidegate.units import exact_duration, format_duration, format_share
from tidegate.view.changes import WantedChange, changes_of
from tidegate.view.figures import milliseconds, rounded
from tidegate.view.judge import Judge, Statistic
from tidegate.view.lag import most_behind
from tidegate.view.percentiles import pooled_quantile
from tidegate.view.sizes import readable


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Latency is judged after the warm-up; cores, changes and rows cover the whole run."""

    seconds: float
    warm_up_s: float
    target_s: float | None
    """The last target that was in force."""
    statistic: Statistic
    judged_seconds: float
    """Seconds after the warm-up that had a target, and rows to judge by it."""
    within_target: float | None
    """The share of the judged seconds within the target; None if there are none."""
    mean_s: float | None
    """Mean latency over all rows."""
    p95_s: float | None
    """95th percentile over all rows, pooled from the ticks' percentiles."""
    core_seconds: float
    """Core-seconds that were granted, whether or not the cores were busy."""
    busy_core_seconds: float | None
    static_cores: int
    """The static allocation that the run is compared with."""
    static_core_seconds: float
    changes: int
    """Decisions acted on that changed cores or tasks."""
    reversals: int
    """Changes in the opposite direction of the change before."""
    moves: int
    """Shards moved; one that moves twice counts twice."""
    nodes: int
    """The most nodes that the tasks of one operator ran on; 0 where that is unknown."""
    durable_bytes: int
    """Bytes of state that nodes fetched because they did not have it."""
    held_back: int
    """Decisions that asked for a change and were not acted on."""
    late_rows: Mapping[str, int]
    """Rows that came after their window or session had closed, for each operator that had some."""
    skipped_rows: Mapping[str, int]
    """Rows that a function could not process, for each operator that left some out."""
    arrived_rows: int
    """Rows completed, shed, and waiting at the end."""
    rows: int
    """Rows completed."""
    largest_backlog_rows: int
    largest_lag_rows: int | None = None
    """The most rows that batches left in the sources; None where no source tells."""
    largest_lag_s: float | None = None
    """How many seconds of arrivals those were."""

    @property
    def cost(self) -> float:
        """Core-seconds as a fraction of the static allocation's."""
        return self.core_seconds / self.static_core_seconds if self.static_core_seconds else 0.0

    @property
    def reversals_a_minute(self) -> float:
        """Reversals per minute."""
        return self.reversals / self.seconds * 60 if self.seconds else 0.0

    def document(self) -> dict[str, Any]:
        """For JSON: latencies in milliseconds, shares as fractions."""
        return {
            "seconds": round(self.seconds, 3),
            "warm_up_seconds": self.warm_up_s,
            "statistic": self.statistic,
            "target_ms": milliseconds(self.target_s),
            "judged_seconds": round(self.judged_seconds, 3),
            "within_target": rounded(self.within_target, 4),
            "mean_ms": milliseconds(self.mean_s),
            "p95_ms": milliseconds(self.p95_s),
            "core_seconds": round(self.core_seconds, 1),
            "busy_core_seconds": rounded(self.busy_core_seconds, 1),
            "static_cores": self.static_cores,
            "static_core_seconds": round(self.static_core_seconds, 1),
            "cost_vs_static": round(self.cost, 4),
            "changes": self.changes,
            "reversals": self.reversals,
            "moves": self.moves,
            "nodes": self.nodes,
            "state_fetched_bytes": self.durable_bytes,
            "held_back": self.held_back,
            "late_rows": dict(self.late_rows),
            "skipped_rows": dict(self.skipped_rows),
            "arrived": self.arrived_rows,
            "rows": self.rows,
            "max_backlog": self.largest_backlog_rows,
            "max_lag": self.largest_lag_rows,
            "max_lag_seconds": rounded(self.largest_lag_s, 1),
        }

    @property
    def headline(self) -> str:
        """The run in one sentence: on time or not, and for how much less."""
        cost = f"{format_share(self.cost)} of what {self.static_cores} fixed cores cost"
        if self.mean_s is None:
            return f"No row was completed; {cost}."
        mean = f"mean latency {format_duration(self.mean_s)}"
        if self.within_target is None or self.target_s is None:
            return f"{mean[0].upper()}{mean[1:]}, no target; {cost}."
        within = format_share(self.within_target)
        target = exact_duration(self.target_s)
        return f"On time {within} of the time: {mean}, target {target}; {cost}."

    def lines(self) -> list[tuple[str, str]]:
        """Labels and values, the most important first."""
        target = "no target" if self.target_s is None else f"target {exact_duration(self.target_s)}"
        after = f" after the first {format_duration(self.warm_up_s)}" if self.warm_up_s else ""
        return [
            (f"time within the target{after}", _share(self.within_target)),
            (f"mean latency ({target})", _seconds(self.mean_s)),
            ("95 % of rows took at most", _seconds(self.p95_s)),
            ("core-seconds used", f"{self.core_seconds:,.0f}"),
            ("core-seconds at work", _count(self.busy_core_seconds)),
            (
                f"core-seconds of {self.static_cores} fixed cores",
                f"{self.static_core_seconds:,.0f}",
            ),
            (f"cost compared with {self.static_cores} fixed cores", _share(self.cost)),
            ("changes of cores or tasks", f"{self.changes:,d}"),
            ("changes back in the other direction", f"{self.reversals:,d}"),
            ("changes wished for and held back", f"{self.held_back:,d}"),
            ("groups of keys moved to another task", f"{self.moves:,d}"),
            *self._fetched(),
            ("rows arrived", f"{self.arrived_rows:,d}"),
            ("rows completed", f"{self.rows:,d}"),
            *((f"late rows of '{name}'", f"{rows:,d}") for name, rows in self.late_rows.items()),
            *(
                (f"rows that '{name}' skipped", f"{rows:,d}")
                for name, rows in self.skipped_rows.items()
            ),
            ("most rows waiting at once", f"{self.largest_backlog_rows:,d}"),
            *self._lag(),
        ]

    def _lag(self) -> list[tuple[str, str]]:
        """Empty where no source tells its lag."""
        if self.largest_lag_rows is None:
            return []
        found = [("most rows left in the source", f"{self.largest_lag_rows:,d}")]
        if self.largest_lag_rows and self.largest_lag_s is not None:
            found.append(("so many had arrived within", _seconds(self.largest_lag_s)))
        return found

    def _fetched(self) -> list[tuple[str, str]]:
        """Empty where a single node had all the state it needed."""
        if self.nodes < 2 and not self.durable_bytes:
            return []
        return [("state read from the checkpoint", readable(self.durable_bytes))]

    def table(self, title: str) -> Table:
        """The summary as a table for the terminal."""
        table = Table(title=title, title_justify="left", show_header=False)
        table.add_column("what")
        table.add_column("value", justify="right", no_wrap=True)
        for label, value in self.lines():
            table.add_row(label, value)
        return table


def summarise(
    records: Sequence[Record],
    *,
    warm_up_s: float = 0.0,
    static_cores: int | None = None,
    statistic: Statistic = "mean",
) -> Summary:
    """Summarise these records, oldest first.

    `static_cores` is the static allocation to compare with; by default it is the most cores that
    the run asked for.
    """
    if not records:
        raise AskedWrongly("There is no record to summarise: give those of at least one tick.")
    ticks = [record.measurement for record in records]
    seconds = sum(tick.interval_s for tick in ticks)
    warm_s = _start_s(records) + warm_up_s
    judged = list(_judged(records, warm_s, statistic))
    judged_seconds = sum(interval_s for interval_s, _ in judged)
    good_seconds = sum(interval_s for interval_s, good in judged if good)
    mean_s, p95_s = _latency_of_rows(ticks, warm_s)
    static_cores = _most_cores(records) if static_cores is None else static_cores
    busy = [
        tick.busy_of_granted * tick.interval_s for tick in ticks if tick.busy_of_granted is not None
    ]
    made = _changes(records)
    behind = most_behind(ticks)
    rows = _completed_rows(ticks)
    return Summary(
        seconds=seconds,
        warm_up_s=warm_up_s,
        target_s=records[-1].target_s,
        statistic=statistic,
        judged_seconds=judged_seconds,
        within_target=good_seconds / judged_seconds if judged_seconds else None,
        mean_s=mean_s,
        p95_s=p95_s,
        core_seconds=sum(tick.cores_granted * tick.interval_s for tick in ticks),
        busy_core_seconds=sum(busy) if busy else None,
        static_cores=static_cores,
        static_core_seconds=static_cores * seconds,
        changes=made.changes,
        reversals=made.reversals,
        moves=made.moves,
        nodes=max((len(set(one.nodes)) for tick in ticks for one in tick.operators), default=0),
        durable_bytes=sum(one.durable_bytes for tick in ticks for one in tick.operators),
        held_back=made.held_back,
        late_rows=_rows_of(ticks, lambda operator: operator.late_rows),
        skipped_rows=_rows_of(ticks, lambda operator: operator.skipped_rows),
        arrived_rows=rows + _shed_rows(ticks) + round(ticks[-1].backlog_rows),
        rows=rows,
        largest_backlog_rows=round(max(tick.backlog_rows for tick in ticks)),
        largest_lag_rows=None if behind is None else behind.lag_rows,
        largest_lag_s=None if behind is None else behind.lag_s,
    )


def _completed_rows(ticks: Sequence[Measurement]) -> int:
    """Rows from outside that batches have processed; by the rates where no batch is told.

    A segment that rows come back to counts them again, so that there the rates say it better.
    """
    outside = [
        segment
        for tick in ticks
        for place, segment in enumerate(tick.segments)
        if place == 0 or segment.apart
    ]
    if outside and not any(segment.loops for segment in outside):
        return sum(batch.rows for segment in outside for batch in segment.batches)
    return round(sum(tick.processed_rate * tick.interval_s for tick in ticks))


def _shed_rows(ticks: Sequence[Measurement]) -> int:
    return sum(source.shed for tick in ticks for source in tick.sources)


def _rows_of(
    ticks: Sequence[Measurement], counted: Callable[[OperatorMeasurement], int]
) -> dict[str, int]:
    """Such rows of each operator that had some."""
    found: dict[str, int] = {}
    for operator in (one for tick in ticks for one in tick.operators if counted(one)):
        found[operator.name] = found.get(operator.name, 0) + counted(operator)
    return found


@dataclass(frozen=True, slots=True)
class _Changes:
    changes: int
    reversals: int
    moves: int
    held_back: int


def _changes(records: Sequence[Record]) -> _Changes:
    """Count the changes, the reversals, the shards moved and the decisions held back."""
    wanted = [(record, changes_of(record)) for record in records]
    steps = [
        _direction(changes)
        for record, changes in wanted
        if record.acted and any(change.kind in ("cores", "tasks") for change in changes)
    ]
    moves = (
        int(change.after)
        for record, changes in wanted
        for change in changes
        if record.acted and change.kind == "moves"
    )
    held_back = sum(1 for record, changes in wanted if changes and not record.acted)
    return _Changes(len(steps), _reversals(steps), sum(moves), held_back)


def _latency_of_rows(
    ticks: Sequence[Measurement], warm_s: float
) -> tuple[float | None, float | None]:
    """Mean and 95th percentile over the rows completed after the warm-up."""
    counted = [
        (tick.latency, tick.processed_rate * tick.interval_s)
        for tick in ticks
        if tick.latency is not None and _counts(tick, warm_s)
    ]
    latencies = [latency for latency, _ in counted]
    weights = [rows for _, rows in counted]
    mean_s = _weighted_mean([latency.mean_s for latency in latencies], weights)
    return mean_s, pooled_quantile(latencies, weights, 0.95) if latencies else None


def _most_cores(records: Sequence[Record]) -> int:
    """The most cores that the run asked for."""
    asked = [record.measurement.cores_asked for record in records]
    chosen = [record.decision.cores or 0 for record in records if record.acted]
    return max(asked + chosen)


def _judged(
    records: Sequence[Record], warm_s: float, statistic: Statistic
) -> Iterator[tuple[float, bool]]:
    """The length of each tick that can be judged, and whether it met its target."""
    judge = Judge(_start_s(records), statistic)
    for record in records:
        met = judge.met(record)
        if met is not None and _counts(record.measurement, warm_s):
            yield record.measurement.interval_s, met


def _start_s(records: Sequence[Record]) -> float:
    first = records[0].measurement
    return first.at_s - first.interval_s


def _counts(tick: Measurement, warm_s: float) -> bool:
    """Whether most of the tick lies after the warm-up."""
    return tick.at_s - tick.interval_s / 2 > warm_s


def _direction(changes: Sequence[WantedChange]) -> float:
    """Above 0 for more, below 0 for less, 0 for neither. Tasks follow cores, so cores decide."""
    cores = sum(change.step for change in changes if change.kind == "cores")
    return cores or sum(change.step for change in changes if change.kind == "tasks")


def _reversals(steps: Sequence[float]) -> int:
    moving = [step for step in steps if step]
    return sum(1 for one, other in pairwise(moving) if (one > 0) != (other > 0))


def _weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float | None:
    if not values:
        return None
    if sum(weights) <= 0:
        return sum(values) / len(values)
    return sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)


def _share(value: float | None) -> str:
    return "-" if value is None else format_share(value)


def _seconds(value: float | None) -> str:
    return "-" if value is None else format_duration(value)


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
