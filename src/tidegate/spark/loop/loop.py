"""The loop on Spark: measure, decide, act, record, once a tick, beside the running queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import SparkSession

from tidegate.control.capacity.cycle import Bounds
from tidegate.control.catalogue import PIPELINE_POLICIES, pipeline_policy
from tidegate.control.controller import Controller, Limits, excluded_periods
from tidegate.control.decision import Decision
from tidegate.control.latency.policy import STEADY_RATIO, LatencyOptions
from tidegate.control.measurement import Measurement
from tidegate.control.shards.balance import Balancer
from tidegate.control.sharing.within_share import WithinShare
from tidegate.control.shedding.catalogue import DEFAULT_SHEDDER, SHEDDERS
from tidegate.control.shedding.policy import shedding
from tidegate.control.whole_executors import WholeExecutors
from tidegate.errors import AskedWrongly, nearest
from tidegate.pipelines.shedding import ShedClass
from tidegate.recording import RecordWriter
from tidegate.spark.batch.segment import SegmentRun
from tidegate.spark.loop.negotiate import (
    cores_per_executor,
    cores_there,
    refuse_dynamic_allocation,
)
from tidegate.spark.loop.ticker import Ticker
from tidegate.spark.master import parse_master
from tidegate.spark.measure.pipeline_meter import PipelineMeter
from tidegate.spark.run import Run
from tidegate.spark.sharing.core_pool import joined
from tidegate.spark.state.files import Durable
from tidegate.units import parse_duration

_FIRST_BATCHES = 3
"""So many batches are each looked at before the next."""
_PATIENCE_S = 1.0
"""A tick takes some hundredths; a batch does not wait for longer than this."""


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
    cores_per_executor: int
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
    master = parse_master(str(session.sparkContext.master))
    per_executor = 1 if master.in_one_process else cores_per_executor(session)
    least, most = _bounds(cores, cores_there(session), per_executor)
    if policy not in PIPELINE_POLICIES:
        raise AskedWrongly(f"there is no policy '{policy}'{nearest(policy, PIPELINE_POLICIES)}")
    by = DEFAULT_SHEDDER if shed is True else shed
    if by and by not in SHEDDERS:
        raise AskedWrongly(f"there is no shedder '{by}'{nearest(by, SHEDDERS)}")
    if not master.in_one_process:
        refuse_dynamic_allocation(session)
    return ControlOptions(
        target_s=parse_duration(target),
        bounds=Bounds(least, most),
        policy=policy,
        latency=LatencyOptions(
            percentile=percentile,
            catch_up_s=parse_duration(catch_up),
            scale_in_after_s=parse_duration(scale_in_after),
        ),
        limits=limits(between_changes, excluded, dry_run=dry_run),
        tick_s=parse_duration(tick),
        local=master.in_one_process,
        cores_per_executor=per_executor,
        shed=by or None,
        classes=classes or {},
    )


def limits(between_changes: str | None, excluded: Sequence[str], *, dry_run: bool) -> Limits:
    """When changes may be made, as a person says it."""
    return Limits(
        t_ra_s=0.0 if between_changes is None else parse_duration(between_changes),
        dry_run=dry_run,
        excluded=excluded_periods(excluded),
    )


def _bounds(
    cores: int | tuple[int, int] | None, there: int | None, per_executor: int
) -> tuple[int, int]:
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
            "a larger master"
        )
    if most < per_executor:
        raise AskedWrongly(
            f"cores=({least}, {most}), but an executor has {per_executor}; raise the maximum to "
            "one executor at least"
        )
    return least, most


class ControlLoop(Ticker):
    """Looks after a pipeline's run: cores, tasks and routes."""

    def __init__(
        self, run: Run, session: SparkSession, options: ControlOptions, checkpoint: str
    ) -> None:
        place = Durable(checkpoint)
        self._part = joined(
            session,
            checkpoint,
            run,
            local=options.local,
            cores=options.bounds.least,
            cores_per_executor=options.cores_per_executor,
            mean_s=options.target_s / STEADY_RATIO[options.latency.percentile],
        )
        super().__init__(
            new_controller(options),
            self._part,
            tick_s=options.tick_s,
            writer=RecordWriter(place.path("")) if place.local else None,
        )
        self._run = run
        self.options = options
        self.meter = PipelineMeter(run, self.negotiator, tick_s=options.tick_s)
        for part in run.segments.values():
            part.before = partial(self._before_batch, part)

    @property
    def alive(self) -> bool:
        """Whether the run is active."""
        return self._run.isActive

    @property
    def over(self) -> bool:
        """Whether the run has ended, be it by a failure that nobody has looked at yet."""
        ended = self._run.ended
        if ended:
            self.leave()
        return ended

    def leave(self) -> None:
        """The cores are the other pipelines'."""
        self._part.leave()

    def measure(self, now_s: float) -> Measurement:
        """By the pipeline's meter, with what the application's other pipelines leave to it."""
        return self._part.shared(self.meter.measure(now_s))

    def _before_batch(self, part: SegmentRun) -> None:
        """After a batch that alone took longer than the target: decide before the next is planned.

        It has gathered as long, and what the last one told must not wait for the next tick: the
        next batch would be as many times larger as this one was late. So would the second one,
        since the first waits for Spark to get going. Batches on target wait for nothing.
        """
        done = part.results
        first = 1 <= len(done) <= _FIRST_BATCHES
        if first or (done and done[-1].duration_s > self.options.target_s):
            self.hurry(_PATIENCE_S)

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
            self._run.shed(keep, decision.keep_by_class, span_s=decision.keep_span_s)


def new_controller(options: ControlOptions) -> Controller:
    """A controller with nothing learned; a replay of records starts from one too."""
    policy = pipeline_policy(
        options.policy,
        target_s=options.target_s,
        bounds=options.bounds,
        options=options.latency,
        tick_s=options.tick_s,
    )
    if options.cores_per_executor > 1:
        policy = WholeExecutors(policy, options.cores_per_executor)
    policy = WithinShare(policy)
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
