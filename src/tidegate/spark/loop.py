"""The loop on Spark: measure, decide, act, record, once a tick, beside the running queries."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from tidegate.control.balance import Balancer
from tidegate.control.controller import Controller, Limits, excluded_periods
from tidegate.control.decision import Decision
from tidegate.control.policies.catalogue import PIPELINE_POLICIES, pipeline_policy
from tidegate.control.policies.cycle import Bounds
from tidegate.control.policies.latency import LatencyOptions
from tidegate.control.policies.shedding import shedding
from tidegate.control.record import Record
from tidegate.control.shed_catalogue import DEFAULT_SHEDDER, SHEDDERS
from tidegate.errors import AskedWrongly, nearest
from tidegate.pipelines.shedding import ShedClass
from tidegate.recording import RecordWriter
from tidegate.spark.master import parse_master
from tidegate.spark.negotiate import (
    ExecutorNegotiator,
    LocalBudget,
    Negotiator,
    refuse_dynamic_allocation,
)
from tidegate.spark.pipeline_meter import PipelineMeter
from tidegate.spark.run import Run
from tidegate.spark.state.files import Durable
from tidegate.units import parse_duration

_REMEMBERED = 7200


@dataclass(frozen=True, slots=True)
class ControlOptions:
    """How a target is to be kept, checked."""

    target_s: float
    bounds: Bounds
    policy: str
    latency: LatencyOptions
    limits: Limits
    tick_s: float
    local: bool
    shed: str | None = None
    """The shedder that is put around the policy; None: nothing is shed but by hand."""
    classes: Mapping[str, ShedClass] = field(default_factory=dict)
    """What the classes of rows are worth."""


def control_options(
    session: SparkSession,
    *,
    target: str,
    cores: int | tuple[int, int] | None,
    policy: str,
    percentile: int | None,
    tick: str,
    catch_up: str,
    scale_in_after: str,
    between_changes: str | None,
    excluded: Sequence[str],
    dry_run: bool,
    shed: bool | str = False,
    classes: Mapping[str, ShedClass] | None = None,
) -> ControlOptions:
    """What the user asked for; a mistake is told before anything starts."""
    target_s = parse_duration(target)
    master = parse_master(str(session.sparkContext.master))
    most_there = session.sparkContext.defaultParallelism if master.in_one_process else None
    least, most = _bounds(cores, most_there)
    if policy not in PIPELINE_POLICIES:
        raise AskedWrongly(f"there is no policy '{policy}'{nearest(policy, PIPELINE_POLICIES)}")
    by = DEFAULT_SHEDDER if shed is True else shed
    if by and by not in SHEDDERS:
        raise AskedWrongly(f"there is no shedder '{by}'{nearest(by, SHEDDERS)}")
    if not master.in_one_process:
        refuse_dynamic_allocation(session)
    return ControlOptions(
        target_s=target_s,
        bounds=Bounds(least, most),
        policy=policy,
        latency=LatencyOptions(
            percentile=percentile,
            catch_up_s=parse_duration(catch_up),
            scale_in_after_s=parse_duration(scale_in_after),
        ),
        limits=Limits(
            t_ra_s=0.0 if between_changes is None else parse_duration(between_changes),
            dry_run=dry_run,
            excluded=excluded_periods(excluded),
        ),
        tick_s=parse_duration(tick),
        local=master.in_one_process,
        shed=by or None,
        classes=classes or {},
    )


def _bounds(cores: int | tuple[int, int] | None, there: int | None) -> tuple[int, int]:
    if cores is None:
        if there is None:
            raise AskedWrongly("give cores=(least, most): a cluster does not say how many it has")
        return 1, there
    least, most = (cores, cores) if isinstance(cores, int) else cores
    if not 1 <= least <= most:
        raise AskedWrongly(f"cores=({least}, {most}): give a minimum from 1 up to the maximum")
    if there is not None and most > there:
        raise AskedWrongly(
            f"cores=({least}, {most}), but the master has {there}; lower the maximum or start with "
            f"local[{most}]"
        )
    return least, most


class ControlLoop:
    """Runs in a thread of its own; what it does is in the records."""

    def __init__(
        self, run: Run, session: SparkSession, options: ControlOptions, checkpoint: str
    ) -> None:
        self._run = run
        self.options = options
        self.negotiator = _negotiator(run, session, options)
        self.meter = PipelineMeter(run, self.negotiator)
        self.controller = new_controller(options)
        self.records: deque[Record] = deque(maxlen=_REMEMBERED)
        self.watchers: list[Callable[[Record], None]] = []
        """Called with every record, in the loop's thread."""
        self.failure: BaseException | None = None
        place = Durable(checkpoint)
        self._writer = RecordWriter(place.path("")) if place.local else None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ticks, name="tidegate-loop", daemon=True)

    def start(self) -> None:
        """Tick until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the tick that runs, then no more."""
        self._ended.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
        if self._writer is not None:
            self._writer.close()

    def _ticks(self) -> None:
        due_s = time.monotonic() + self.options.tick_s
        while not self._ended.wait(max(0.0, due_s - time.monotonic())):
            due_s = max(due_s + self.options.tick_s, time.monotonic())
            try:
                self.tick(time.time())
            except Exception as error:
                if not self._run.isActive:
                    return
                self.failure = error
                raise

    def tick(self, now_s: float) -> Record:
        """One tick: measure, decide, act, record."""
        record = self.controller.tick(self.meter.measure(now_s))
        overdue = self.negotiator.overdue()
        if overdue is not None:
            notes = (*record.decision.notes, overdue)
            record = replace(record, decision=replace(record.decision, notes=notes))
        if record.acted:
            self.act(record.decision)
        self.records.append(record)
        if self._writer is not None:
            self._writer.write(record)
        for watcher in list(self.watchers):
            watcher(record)
        return record

    def act(self, decision: Decision) -> None:
        """Do what was decided: cores, tasks, routes, shedding; all hold from the next batch on."""
        if decision.cores is not None:
            self.negotiator.ask(decision.cores)
        for operator, tasks in decision.tasks.items():
            self._run.rescale(operator, tasks)
        for operator, moves in decision.moves.items():
            tasks = self._run.allocation()[operator].tasks
            self._run.reroute(operator, {s: t for s, t in moves.items() if t < tasks})
        if decision.keep is not None or decision.keep_by_class:
            keep = self._run.keep()[0] if decision.keep is None else decision.keep
            self._run.shed(keep, decision.keep_by_class)


def new_controller(options: ControlOptions) -> Controller:
    """A controller with nothing learned; a replay of records starts from one too."""
    policy = pipeline_policy(
        options.policy,
        target_s=options.target_s,
        bounds=options.bounds,
        options=options.latency,
        tick_s=options.tick_s,
    )
    if options.shed is not None:
        policy = shedding(
            policy,
            target_s=options.target_s,
            bounds=options.bounds,
            by=options.shed,
            options=options.latency,
            classes=options.classes,
        )
    return Controller(
        policy,
        bounds=options.bounds,
        target_s=options.target_s,
        limits=options.limits,
        balancer=Balancer(),
    )


def _negotiator(run: Run, session: SparkSession, options: ControlOptions) -> Negotiator:
    if options.local:
        return LocalBudget(options.bounds.least)
    conf = session.sparkContext.getConf()
    per_executor = int(conf.get("spark.executor.cores", "1") or 1)
    master = parse_master(str(session.sparkContext.master))
    if master.url.startswith("local-cluster"):
        per_executor = int(master.url.split("[")[1].split(",")[1])
    return ExecutorNegotiator(session, per_executor, options.bounds.least, boundary=run.boundary)
