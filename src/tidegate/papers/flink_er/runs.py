"""Runs of an application under the strategies that are compared: static, `flow` and `latency`.

*static* is the paper's Original Flink: as many tasks as there are machines, for ever. *flow* is
Flink-ER's strategy, and *latency* Tidegate's own policy; both may add the four standby cores.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from tidegate.apps.application import Settings
from tidegate.apps.run_application import ApplicationRun, run_application
from tidegate.control.record import Record
from tidegate.papers.application_runs import run_to_its_end
from tidegate.papers.flink_er.experiments import LoadExperiment
from tidegate.papers.flink_er.setting import CORES, MOST, TARGET_S
from tidegate.papers.flink_er.usage import MinuteUsage, Usage
from tidegate.workload.profile import constant

SAY_EVERY = 3
"""A line of progress for every so many minutes."""
WARM_UP_S, QUICK_WARM_UP_S = 25.0, 5.0
_WARM_UP_LOAD = 0.5


@dataclass(frozen=True, slots=True)
class Strategy:
    """Who decides, and about how many cores."""

    name: str
    policy: str
    cores: int | tuple[int, int]

    @property
    def fewest(self) -> int:
        """The cores that it begins with."""
        return self.cores if isinstance(self.cores, int) else self.cores[0]


STATIC = Strategy("static", "static", CORES)
FLOW = Strategy("flow", "flow", (CORES, MOST))
LATENCY = Strategy("latency", "latency", (CORES, MOST))
STRATEGIES = (STATIC, FLOW, LATENCY)


@dataclass(frozen=True, slots=True)
class StrategyRun:
    """A run that went to its end, and what its processes used."""

    strategy: Strategy
    ran: ApplicationRun
    usage: list[MinuteUsage]


def warm_up(spark: SparkSession, experiment: LoadExperiment, seconds: float) -> None:
    """Run the application on all ten cores first: Spark gets faster for its first minute."""
    app = experiment.application
    rate = constant(_WARM_UP_LOAD * experiment.load(1.0).capacity)
    settings = Settings(rate=rate, seconds=seconds, stretch=True, extra=experiment.extra)
    run_to_its_end(
        run_application(
            spark, app, settings, policy="static", cores=MOST, split=_split(experiment, MOST)
        )
    )


def run(
    spark: SparkSession,
    experiment: LoadExperiment,
    strategy: Strategy,
    *,
    minute_s: float,
    say: Callable[[str], None],
) -> StrategyRun:
    """Run the application under its rising load; its answers are verified."""
    load = experiment.load(minute_s)
    usage = Usage(minute_s)
    told = RunNews(f"{experiment.title}, {strategy.name}", minute_s, say)

    def on_record(record: Record) -> None:
        usage.look(record.measurement.at_s)
        told.tell(record)

    ran = run_application(
        spark,
        experiment.application,
        Settings(rate=load.profile(), seconds=load.seconds, stretch=True, extra=experiment.extra),
        target=f"{1000 * TARGET_S:.0f} ms",
        cores=strategy.cores,
        policy=strategy.policy,
        split=_split(experiment, strategy.fewest),
        on_record=on_record,
    )
    return StrategyRun(strategy, run_to_its_end(ran), usage.minutes())


def _split(experiment: LoadExperiment, tasks: int) -> dict[str, int]:
    """So many tasks for every operator that may have them."""
    most = experiment.application.most_tasks(experiment.extra)
    return {name: min(tasks, most[name]) for name in experiment.application.operators}


class RunNews:
    """Says every few minutes how a run goes."""

    def __init__(self, name: str, minute_s: float, say: Callable[[str], None]) -> None:
        self._name = name
        self._minute_s = minute_s
        self._say = say
        self._begun_s: float | None = None
        self._said = 0

    def tell(self, record: Record) -> None:
        """Say it, if it is time."""
        now = record.measurement
        if self._begun_s is None:
            self._begun_s = now.at_s
        minute = int((now.at_s - self._begun_s) / self._minute_s)
        if minute < self._said + SAY_EVERY:
            return
        self._said = minute
        latency = "" if now.latency is None else f", latency {now.latency.mean_s:.1f} s"
        self._say(
            f"{self._name}, minute {minute}: {now.arrival_rate:,.0f} rows/s arrive,"
            f" {now.processed_rate:,.0f} are done, {now.backlog_rows:,.0f} wait{latency},"
            f" {now.cores_granted} cores"
        )
