"""The control loop of a pipeline on Spark: measures, decides, acts and records once a tick."""

from functools import partial

from pyspark.sql import SparkSession

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.claim import Claim
from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement
from tidegate.control.shedding.keep import KEEP_ALL
from tidegate.spark.batch.segment import SegmentRun
from tidegate.spark.loop.negotiate import (
    LocalBudget,
    Negotiator,
    UntouchedExecutors,
    cores_there,
)
from tidegate.spark.loop.recorder import recorder
from tidegate.spark.loop.settings import LoopSettings
from tidegate.spark.loop.ticker import Ticker
from tidegate.spark.master import parse_master
from tidegate.spark.measure.pipeline_meter import PipelineMeter
from tidegate.spark.run import Run
from tidegate.spark.sharing.core_pool import Part, joined
from tidegate.spark.state.files import Durable

_FIRST_BATCHES = 3
"""After each of this many first batches, the loop decides before the next batch is planned."""
_PATIENCE_S = 1.0
"""The longest that a batch waits for a tick. A tick takes some hundredths of a second."""


class ControlLoop(Ticker):
    """Controls the cores, tasks, routes and shedding of one running pipeline."""

    def __init__(
        self, run: Run, session: SparkSession, settings: LoopSettings, checkpoint: str
    ) -> None:
        assembly = settings.assembly
        place = Durable(checkpoint)
        self._run, self._session, self._checkpoint = run, session, checkpoint
        self._local = parse_master(str(session.sparkContext.master)).in_one_process
        self._part: Part | None = None
        """Its part of the pool; None in a dry run, which has no say in what others get."""
        negotiator: Negotiator
        if not assembly.limits.dry_run:
            negotiator = self._join(assembly)
        elif self._local:
            negotiator = LocalBudget(cores_there(session) or 1)
        else:
            negotiator = UntouchedExecutors(session, assembly.cores_per_executor)
        super().__init__(
            new_controller(assembly),
            negotiator,
            name=run.name,
            tick_s=assembly.tick_s,
            writer=recorder(place),
            place=place,
            settings=settings,
        )
        self.assembly = assembly
        self.meter = PipelineMeter(run, self.negotiator, tick_s=assembly.tick_s)
        for part in run.segments.values():
            part.before = partial(self._before_batch, part)

    def _join(self, assembly: Assembly) -> Part:
        """Join the application's pool of cores."""
        self._part = joined(
            self._session,
            self._checkpoint,
            self._run,
            local=self._local,
            bounds=assembly.bounds,
            cores_per_executor=assembly.cores_per_executor,
        )
        if self._part.warm is not None:
            for part in self._run.segments.values():
                part.counted = self._part.warm.counted
        return self._part

    def negotiator_for(self, assembly: Assembly, now: Negotiator) -> Negotiator:
        """After a dry run, a part of the pool: it begins with the cores that the dry run counted.

        A pipeline that goes back to a dry run keeps its part, and with it the cores it has.
        """
        if assembly.limits.dry_run or self._part is not None:
            return now
        part = self._join(assembly)
        if self._local:
            part.ask(now.asked)  # the controller goes to the bounds, with the tasks
        return part

    def took_over(self, assembly: Assembly) -> None:
        """Measure and plan batches by the new settings."""
        super().took_over(assembly)
        self.assembly, self.meter.negotiator = assembly, self.negotiator

    @property
    def alive(self) -> bool:
        """Whether the run is active."""
        return self._run.isActive

    @property
    def over(self) -> bool:
        """Whether the run has ended, for instance by a failure that nobody has handled yet."""
        ended = self._run.ended
        if ended:
            self.leave()
        return ended

    def leave(self) -> None:
        """Leave the pool of cores, so that other pipelines can have this one's."""
        if self._part is not None:
            self._part.leave()

    def measure(self, now_s: float) -> Measurement:
        """Measure the tick that ends now with the pipeline's meter."""
        return self.meter.measure(now_s)

    def share_of(self, claim: Claim) -> int | None:
        """The cores that the application's other pipelines leave to this one; None for no limit."""
        return None if self._part is None else self._part.share_of(claim)

    def _before_batch(self, part: SegmentRun) -> None:
        """After a batch that overran the target, decide again before planning the next one.

        Rows kept arriving while it ran, so the next batch would overrun by the same factor. The
        loop also decides after each of the first batches, because Spark is still warming up. No
        other batch waits for a decision.
        """
        done = part.results
        first = 1 <= len(done) <= _FIRST_BATCHES
        if first or (done and done[-1].duration_s > self.assembly.target.latency_s):
            self.hurry(_PATIENCE_S)

    def act(self, decision: Decision) -> None:
        """Apply a decision on cores, tasks, routes and shedding, from the next batch on.

        Cores come last, because the cluster may not answer, and the rest does not depend on them.
        """
        for operator, tasks in decision.tasks.items():
            self._run.rescale(operator, tasks)
        for operator, moves in decision.moves.items():
            tasks = self._run.allocation()[operator].tasks
            self._run.reroute(operator, {s: t for s, t in moves.items() if t < tasks})
        for operator, shares in decision.deal.items():
            if len(shares) in (0, self._run.allocation()[operator].tasks):
                self._run.deal(operator, shares)
        for operator, parts in decision.parts.items():
            self._run.in_parts(operator, parts)
        for operator, begins in decision.preview.items():
            self._run.preview(operator, begins)
        if decision.keep is not None or decision.keep_by_class:
            self._run.keep_from_now(self._run.keep().decided(decision))
        if decision.release_first and self._part is not None:
            self._part.release_first(decision.release_first)
        if decision.cores is not None:
            self.negotiator.ask(decision.cores)

    def notes(self) -> tuple[str, ...]:
        """Notes for the record: in the first one how it was warmed up."""
        said = super().notes()
        warmed = self._run.warmed
        return said if warmed is None or self.records else (*said, warmed.words)

    def keep_all(self) -> bool:
        """Keep every row from the next batch on."""
        self._run.keep_from_now(KEEP_ALL)
        return True
