"""Names the likely cause why more cores did not make batches faster, and what helps.

Each cause has its evidence in what was measured: readers that are fewer than the cores, a partition
or a shard that has most rows, parts of a batch in which no task works, cores that are granted and
idle, rows that take longer the more tasks there are. The first that fits is named. A query of
others tells less: no shards, and not how the work is divided among its tasks.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.control.batch_parts import (
    COMMIT,
    LOG,
    OFFSETS,
    OTHER,
    OWN_PLAN,
    PLANNING,
    SLOWEST,
    STAGES,
    STARTING,
)
from tidegate.control.effect.judged_batch import JudgedBatch
from tidegate.control.effect.series import Before
from tidegate.control.lag import Lag, PartitionLag

HOT_PARTITION = "hot partition"
PARTITIONS = "partitions"
HOT_KEY = "hot key"
SKEW = "skew"
SOURCE = "source"
PLANNING_TIME = "planning"
STORAGE = "checkpoint storage"
SINK = "sink"
IDLE = "idle cores"
UNKNOWN = "unknown"

_NO_SMALLER = 0.8
"""The fullest task has kept this share of what it had, although there are more tasks."""
_UNEVEN = 1.5
"""delta from which a task is much fuller than the mean."""
_MOST = 0.5
"""A part that takes this share of a batch is what makes it long."""
_ONE_TASK = 1.5
"""If no more cores than this are busy, one task does nearly all of the work."""
_SLOWER = 1.25
"""Rows that take so many times as long in their tasks are held up by something they share."""


@dataclass(frozen=True, slots=True)
class LikelyCause:
    """A likely cause."""

    name: str
    why: str
    """A sentence without its end."""


@dataclass(frozen=True, slots=True)
class HottestShard:
    """The hottest shard of an operator."""

    shard: int
    share: float
    """Its share of the operator's rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What was measured of a segment whose scale-outs had no effect."""

    before: Before
    after: Sequence[JudgedBatch]
    """The newest batches on more tasks; at least one."""
    lag: Lag | None = None
    reads: bool = False
    """Whether what it does with its rows is done in the tasks that read them."""
    hot_partitions: Sequence[tuple[PartitionLag, float]] = ()
    """Partitions that get many times as many rows as the others, with how many times."""
    hot_shards: Mapping[str, HottestShard] = field(default_factory=dict)
    """The hottest shard of each keyed operator of the segment."""

    @property
    def tasks(self) -> int:
        """Tasks of the newest batch."""
        return self.after[-1].tasks

    @property
    def imbalance(self) -> float:
        """delta of the newest batch."""
        return self.after[-1].imbalance

    @property
    def fullest(self) -> float:
        """The share of the rows that the fullest task has, over that before the scale-outs."""
        now = statistics.median(one.imbalance / one.tasks for one in self.after)
        return now / (self.before.imbalance / self.before.tasks)

    @property
    def busy_cores(self) -> float | None:
        """Cores that are busy while a batch runs; None where that is not told."""
        told = [one.busy_cores for one in self.after if one.busy_cores is not None]
        return statistics.median(told) if told else None

    def part(self, *names: str) -> float:
        """The share of a batch that these parts take."""
        return statistics.median(one.part(*names) for one in self.after)


def likely_cause(evidence: Evidence) -> LikelyCause:
    """The first cause that the evidence fits."""
    for look in (_partitions, _skew, _outside_of_tasks, _few_busy, _shared):
        cause = look(evidence)
        if cause is not None:
            return cause
    return LikelyCause(
        UNKNOWN,
        "What was measured does not tell why; Spark's page of stages shows what the tasks of a"
        " batch wait for",
    )


def _partitions(seen: Evidence) -> LikelyCause | None:
    """Few tasks read, or one of them reads most rows."""
    readers = None if seen.lag is None else seen.lag.readers
    if readers is None or not seen.reads:
        return None
    if seen.hot_partitions:
        one, times = max(seen.hot_partitions, key=lambda found: found[1])
        return LikelyCause(
            HOT_PARTITION,
            f"The likely cause is a hot partition: {one.name} gets {times:.0f} times as many rows"
            " as the mean of the others, and one task reads it; minPartitions splits it, and a"
            " better key spreads its rows",
        )
    busy = seen.busy_cores
    if readers >= seen.tasks or (busy is not None and busy < 0.6 * readers):
        return None
    tasks = "1 task reads" if readers == 1 else f"{readers} tasks read"
    return LikelyCause(
        PARTITIONS,
        f"The likely cause is too few partitions: {tasks} the source for {seen.tasks} cores; set"
        f" minPartitions to {seen.tasks} or more, or give the topic more partitions",
    )


def _skew(seen: Evidence) -> LikelyCause | None:
    """The fullest task has as much to do as before, however many others there are."""
    delta, told = seen.imbalance, seen.part(SLOWEST)
    if delta < _UNEVEN or seen.fullest < _NO_SMALLER or 0.0 < told < 1.0 - _MOST:
        return None
    for name, hot in seen.hot_shards.items():
        if hot.share * seen.tasks >= 0.7 * delta:
            return LikelyCause(
                HOT_KEY,
                f"The likely cause is one hot key: shard {hot.shard} of '{name}' has"
                f" {_percent(hot.share)} of its rows, which one task has to process; a finer key"
                " would divide them",
            )
    return LikelyCause(
        SKEW,
        f"The likely cause is skew: the fullest task has {delta:.1f} times the mean of"
        f" {seen.tasks}, and no fewer rows than before; a finer key would divide them",
    )


def _outside_of_tasks(seen: Evidence) -> LikelyCause | None:
    """Most of a batch is not spent in tasks."""
    source, planning = seen.part(OFFSETS), seen.part(PLANNING, OWN_PLAN)
    storage = seen.part(LOG, COMMIT)
    rest = seen.part(STAGES, STARTING, OTHER) if seen.part(SLOWEST) > 0.0 else 0.0
    share = max(source, planning, storage, rest)
    if share < _MOST:
        return None
    if share == source:
        return LikelyCause(
            SOURCE,
            f"The likely cause is the source: asking it what there is takes {_percent(share)} of a"
            " batch, in which no task works",
        )
    if share == planning:
        return LikelyCause(
            PLANNING_TIME,
            f"The likely cause is planning: it takes {_percent(share)} of a batch on the driver, in"
            " which no task works; a simpler query, or fewer and larger files, would help",
        )
    if share == storage:
        return LikelyCause(
            STORAGE,
            f"The likely cause is the checkpoint's storage: writing offsets and state to it takes"
            f" {_percent(share)} of a batch; a faster one would help",
        )
    return LikelyCause(
        SINK,
        f"The likely cause is the sink, or other work beside the operators: {_percent(share)} of a"
        " batch is not spent in their tasks",
    )


def _few_busy(seen: Evidence) -> LikelyCause | None:
    """Cores are granted and idle."""
    busy = seen.busy_cores
    if busy is None or busy >= _MOST * seen.tasks:
        return None
    while_it_runs = f"{busy:.1f} of {seen.tasks} cores are busy while a batch runs"
    if busy < _MOST:
        return LikelyCause(
            SINK,
            f"The likely cause is the sink or the driver: {while_it_runs}, so a batch waits for"
            " something that is no task",
        )
    if busy <= _ONE_TASK:
        return LikelyCause(
            HOT_KEY,
            f"The likely cause is one hot key or one large partition: {while_it_runs}, so one task"
            " does nearly all of the work; Spark's page of stages shows which",
        )
    return LikelyCause(
        IDLE,
        f"The likely cause is too few tasks, or tasks of very different size: {while_it_runs}; look"
        " at spark.sql.shuffle.partitions and at the partitions of the source",
    )


def _shared(seen: Evidence) -> LikelyCause | None:
    """All tasks are busy, and each row takes longer than before."""
    now, then = _row_s(seen.after), _row_s(seen.before.batches)
    if now is None or then is None or now < _SLOWER * then:
        return None
    return LikelyCause(
        SINK,
        "The likely cause is something that all tasks wait for, such as the sink, a service, a disk"
        f" or too few real cores: a row takes {now / then:.1f} times as long in its task as on"
        f" {seen.before.tasks} cores",
    )


def _row_s(batches: Sequence[JudgedBatch]) -> float | None:
    told = [one.busy_s / one.rows for one in batches if one.busy_s is not None]
    return statistics.median(told) if told else None


def _percent(share: float) -> str:
    return f"{100.0 * share:.0f} %"
