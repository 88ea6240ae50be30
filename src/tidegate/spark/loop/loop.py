"""The loop on Spark: measure, decide, act, record, once a tick, beside the running queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import SparkSession

from tidegate.control.assemble import (
    DEFAULT_SHEDDER,
    Assembly,
    new_controller,
    policy_name,
    shedder_name,
)
from tidegate.control.bounds import Bounds
from tidegate.control.claim import Claim
from tidegate.control.decision import Decision
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.limits import Limits, excluded_periods
from tidegate.control.measurement import Measurement
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
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
"""After each of these the loop decides before the next one is planned."""
_PATIENCE_S = 1.0
"""A tick takes some hundredths; a batch does not wait for longer than this."""


@dataclass(frozen=True, slots=True)
class ControlOptions:
    """How a target is to be kept, checked: the controller, and where it runs."""

    assembly: Assembly
    local: bool
    """Threads of one process, where cores are a budget."""


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
    by = DEFAULT_SHEDDER if shed is True else shed
    if not master.in_one_process:
        refuse_dynamic_allocation(session)
    return ControlOptions(
        Assembly(
            target=Target(parse_duration(target), percentile),
            bounds=Bounds(least, most),
            policy=policy_name(policy),
            latency=LatencyOptions(
                catch_up_s=parse_duration(catch_up),
                scale_in_after_s=parse_duration(scale_in_after),
            ),
            limits=limits(between_changes, excluded, dry_run=dry_run),
            tick_s=parse_duration(tick),
            cores_per_executor=per_executor,
            shed=shedder_name(by) if by else None,
            classes=classes or {},
        ),
        local=master.in_one_process,
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
        assembly = options.assembly
        self._part = joined(
            session,
            checkpoint,
            run,
            local=options.local,
            cores=assembly.bounds.least,
            cores_per_executor=assembly.cores_per_executor,
        )
        super().__init__(
            new_controller(assembly),
            self._part,
            tick_s=assembly.tick_s,
            writer=RecordWriter(place.path("")) if place.local else None,
        )
        self._run = run
        self.options = options
        self.meter = PipelineMeter(run, self.negotiator, tick_s=assembly.tick_s)
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
        """By the pipeline's meter."""
        return self.meter.measure(now_s)

    def share_of(self, claim: Claim) -> int | None:
        """What the application's other pipelines leave to this one."""
        return self._part.share_of(claim)

    def _before_batch(self, part: SegmentRun) -> None:
        """After a batch that overran the target, decide again before planning the next one.

        Rows kept arriving while it ran, so the next batch would overrun by the same factor. The
        first batches are each looked at, because they also wait for Spark to get going. Batches on
        target wait for nothing.
        """
        done = part.results
        first = 1 <= len(done) <= _FIRST_BATCHES
        if first or (done and done[-1].duration_s > self.options.assembly.target.latency_s):
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
