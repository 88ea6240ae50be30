"""What a policy sees: one immutable measurement of the pipeline per tick."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.control.lag import Lag
from tidegate.control.row_counts import SourceCount


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorMeasurement:
    """One operator during the tick: DRS IV-A's lambda_i, mu_i, k_i, and Elasticutor's delta."""

    name: str
    arrival_rate: float
    """Rows per second offered to the operator (lambda_i)."""
    service_rate: float
    """Rows per second that one core completes (mu_i)."""
    arrival_scv: float = 1.0
    """Squared coefficient of variation of the gaps between its rows; 1 while it is not known."""
    service_scv: float = 1.0
    """The same of the time that a row takes."""
    tasks: int = 1
    imbalance: float = 1.0
    """delta: load of the fullest task over the mean load of the tasks."""
    state_bytes: int = 0
    segment: str = "main"
    rows: int = 0
    """Rows that entered it during the tick."""
    busy_s: float = 0.0
    """Sum of its tasks' time at work during the tick."""
    most_tasks: int | None = None
    """How many tasks it may have; None: any number."""
    least_tasks: int = 1
    inside: str | None = None
    """The operator, source or channel in whose tasks it runs; None: it has tasks of its own."""
    route: Sequence[int] = ()
    """Task of each shard; of each slot for a map whose rows are `dealt`; empty for other maps."""
    shard_rows: Sequence[int] = ()
    """Rows per shard during the tick; empty for a map operator."""
    nodes: tuple[str, ...] = ()
    """The node of each task, which caches the state of the task's shards; empty while unknown."""
    durable_bytes: int = 0
    """State that its tasks fetched during the tick because their nodes did not have it."""
    late_rows: int = 0
    """Rows that came during the tick after their window or session had closed; they changed
    nothing."""
    skipped_rows: int = 0
    """Rows that its function could not process during the tick, and that were left out."""
    arrival_scv_error: float = 0.0
    """Standard error of `arrival_scv`; 0 while 1 is assumed."""
    service_scv_error: float = 0.0
    """Standard error of `service_scv`; 0 while 1 is assumed."""
    inputs: tuple[str, ...] = ()
    """The operators and sources whose rows it reads, also through merges and channels; empty where
    that is not told."""
    rows_out: int = 0
    """Rows that left it during the tick."""
    row_bytes: float = 0.0
    """Mean size of a row that enters it, in Arrow's format; 0 while it is not known."""
    task_bytes: float = 0.0
    """Mean size of what one of its tasks received in a batch."""
    task_rates: tuple[float, ...] = ()
    """Rows per second that each task completes while it works, by the executor that it ran on, 0
    where that one has had no rows; empty where one executor runs all of them or places are not
    known."""
    executors: tuple[str, ...] = ()
    """The executor that each task ran on last; empty while it is not known for the present tasks.
    """
    preview: bool | None = None
    """Whether the rows of its next batch will be counted by shard before they are routed; None:
    that is not possible, because they do not come straight from a source or a channel."""
    preview_s: float | None = None
    """Mean time that this took in the batches of the tick; None: no rows were counted."""
    dealt: bool = False
    """Whether it is a map whose rows are dealt to its tasks by shares: its route is one of slots,
    and it has no shards."""
    parts: int = 1
    """In how many parts each of its tasks will work on its rows."""
    task_wait_s: float | None = None
    """Mean time that one of its tasks waited for that; None where it cannot be told."""
    combined_rows: int | None = None
    """Rows that its tasks were given during the tick, where rows were combined before; `rows` is
    how many they stand for. None: no batch of the tick combined its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """A request for executors that has waited much longer than usual."""

    missing: int
    """Executors that have not come."""
    requested: int
    """Executors that were requested in all."""
    waited_s: float
    usual_s: float | None = None
    """How long grants have taken so far; None before the first one."""

    @property
    def words(self) -> str:
        """What is missing and since when, for a person."""
        usual = "" if self.usual_s is None else f" (usual: {self.usual_s:.0f} s)"
        return (
            f"{self.missing} of {self.requested} executors requested {self.waited_s:.0f} s ago have"
            f" not started{usual}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorMeasurement:
    """One executor during the tick, as its tasks reported it."""

    name: str
    memory_bytes: int = 0
    """Memory that its Python workers had, together, at the end of their largest tasks; 0 where they
    did not tell."""
    base_bytes: int = 0
    """The part of it that they had before they read a row."""
    limit_bytes: int | None = None
    """How much they may have; None where nothing limits them."""
    parts: int = 1
    """In how many parts its tasks worked on their rows."""
    clock_ahead_s: float = 0.0
    """How far its clock is at least ahead of the driver's, or behind if negative; 0 where the times
    of its tasks do not tell of a difference."""
    state_bytes: int = 0
    """State of the shards that it works on. It is in files, which memory is not needed for."""

    @property
    def fullness(self) -> float:
        """The share of its memory that was used; 0 where nothing limits it."""
        return self.memory_bytes / self.limit_bytes if self.limit_bytes else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMeasurement:
    """One finished micro-batch: a sample (rows, tasks, duration) for the micro-batch model."""

    batch_id: int
    rows: int
    """Rows that it processed: those that were not shed."""
    tasks: int
    """Tasks of its widest stage: the cores it could use."""
    imbalance: float
    """delta of the batch: time of the slowest tasks over the mean, weighted over its stages."""
    duration_s: float
    """From its trigger to its commit."""
    ended_s: float
    outlier: str | None = None
    """Why it is no guide to the next batch ("first", "new tasks", "garbage collection"), if so."""
    shed_rows: int = 0
    """Rows that it was offered in addition to `rows`, and shed."""
    latency_s: float | None = None
    """Mean sojourn of this batch's rows alone, where it can be measured. The latency of a tick may
    be taken over a longer window."""
    parts_s: Mapping[str, float] = field(default_factory=dict)
    """What the duration is made of, as far as it is told (`control/batch_parts.py` names them)."""
    busy_s: float | None = None
    """Core seconds of all its tasks, where Spark alone tells of them; None: not told."""
    newest_age_s: float | None = None
    """How old its newest row was when it began, by the row's arrival time; negative for a time of
    the future; None without arrival times."""
    rowless_s: float = 0.0
    """The part of `busy_s` that its tasks would have taken without any row, as far as can be told
    from its stages (`control/learning/row_work.py`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentMeasurement:
    """One streaming query during the tick."""

    name: str
    arrival_rate: float
    """Rows per second offered to it: from outside, or by the channel it reads."""
    backlog_rows: float
    tasks: int
    """Cores that its next micro-batch may use."""
    batches: tuple[BatchMeasurement, ...] = ()
    """Those that ended during the tick, oldest first."""
    trigger_s: float = 0.0
    """Fixed trigger interval; 0: the next batch follows at once."""
    apart: bool = False
    """Whether its rows come from outside although it is not the first segment."""
    loops: bool = False
    """Whether its rows can come back to it through a loop."""
    latency: "Latency | None" = None
    """Sojourn in this segment alone, of the rows that it completed: from their arrival at it (the
    hand-over, where it reads a channel) to the end of their batch."""
    handed: Mapping[str, int] = field(default_factory=dict)
    """Rows that those batches handed over to each segment that reads a channel of this one."""
    between: bool = False
    """No batch is running: the next one waits for this decision, then takes the whole backlog."""
    lag: Lag | None = None
    """How far it is behind its sources, where these tell; None: they do not."""
    idle: bool = False
    """Whether it has nothing to do: its last look at its sources found no row, no batch runs, and
    all rows that had come are done. False also while that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Sojourn of what was completed during the tick: rows of a segment, or inputs of a pipeline."""

    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The pipeline during one tick: all that a policy may know about the present.

    Time comes in as data (`at_s`), so that the same policy runs in a simulator and on Spark.
    """

    at_s: float
    """Seconds since the epoch at the end of the tick."""
    interval_s: float
    """Length of the tick: the time since the last one."""
    arrival_rate: float
    """Rows per second that arrived from outside (lambda_0)."""
    processed_rate: float
    """Rows per second completed."""
    backlog_rows: float
    """Rows that have arrived and are not completed at the end of the tick."""
    cores_asked: int
    """Cores (a backtest's machines) asked for so far."""
    cores_granted: int
    """Cores that are up and working."""
    saturated: bool
    """Rows were waiting all the time, so `processed_rate` was the capacity (MST III-B)."""
    cores_busy: float | None = None
    """Mean number of cores at work, where it can be measured; by the tasks that ended during the
    tick, some of which worked before it (`busy_of_granted` leaves that out)."""
    latency: Latency | None = None
    """Sojourn of inputs: from the arrival of a row until all rows derived from it are done."""
    operators: tuple[OperatorMeasurement, ...] = ()
    segments: tuple[SegmentMeasurement, ...] = ()
    stale: str | None = None
    """Why there is nothing new to decide on ("no batch ended for 12 s"); None when there is."""
    grant_s: float | None = None
    """The observed time until cores that are asked for are granted; None before the first time."""
    tick_s: float | None = None
    """Length of a regular tick, where ticks may come early; None: this tick was regular."""
    keep: float = 1.0
    """Fraction of the rows that the next micro-batch will not shed."""
    keep_by_class: Mapping[str, float] = field(default_factory=dict)
    """`keep` of the classes of rows that have a fraction of their own."""
    sources: tuple[SourceCount, ...] = ()
    """Rows offered and kept, per source, by the batches that ended during the tick."""
    executors: tuple[ExecutorMeasurement, ...] = ()
    """The executors that had tasks; empty where all is one process."""
    overdue: Overdue | None = None
    """Executors that were requested and do not come; None while all come in time."""

    @property
    def busy_of_granted(self) -> float | None:
        """Cores at work, of those that are granted: never more than these."""
        return None if self.cores_busy is None else min(self.cores_busy, float(self.cores_granted))

    @property
    def lag_rows(self) -> int | None:
        """Rows that the newest batches left in their sources; None where no source tells."""
        told = [segment.lag.rows for segment in self.segments if segment.lag is not None]
        return sum(told) if told else None

    @property
    def lag_s(self) -> float | None:
        """How many seconds of arrivals that is, in the segment that is most behind."""
        lags = (segment.lag for segment in self.segments)
        told = [lag.seconds for lag in lags if lag is not None and lag.seconds is not None]
        return max(told, default=None)

    @property
    def step_s(self) -> float:
        """Time until the next tick."""
        return self.interval_s if self.tick_s is None else self.tick_s
