"""The transactions of a segment: each micro-batch is planned, run and committed exactly once.

This is the order of steps that docs/exactly-once.md describes, without Spark: what a cluster does
in a batch is behind `Work`. Tests run the same code on an imitated filesystem that fails in every
way (tests/faults).
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tidegate.control.row_counts import SourceCount
from tidegate.pipelines.graph import Segment
from tidegate.pipelines.origins import origins_of
from tidegate.spark.batch.channel import Log
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.committed import newest_committed
from tidegate.spark.batch.next_allocation import NextAllocation
from tidegate.spark.batch.older_versions import OlderVersions, tidy_older
from tidegate.spark.batch.plan import BatchPlan, OperatorPlan, Plans
from tidegate.spark.batch.report import TaskReport, newest_of
from tidegate.spark.batch.step import Step, Steps
from tidegate.spark.owner.lease import Lease
from tidegate.spark.shedding.ledger import SourceTotals
from tidegate.spark.state.event_times import ALL, IDLE_US
from tidegate.spark.state.files import Durable
from tidegate.spark.state.kept_versions import KeptVersions
from tidegate.spark.state.manifest import KEPT, Manifest, Manifests
from tidegate.spark.state.version import Version

Written = Mapping[str, list[tuple[str, int]]]
"""For each channel, the files that a batch wrote into it, with their rows."""


class Work(Protocol):
    """The part of a micro-batch that a cluster does."""

    def operators(self) -> Mapping[str, OperatorPlan]:
        """Tasks and routes for the plan of a new batch."""
        ...

    def previewed(self, plan: BatchPlan) -> BatchPlan:
        """The plan of a new batch, with routes that suit its rows where they are to be counted."""
        ...

    def compile(self, plan: BatchPlan, before: Mapping[str, Version]) -> None:
        """Make everything ready to run by this plan, from the state before the batch."""
        ...

    def write_sinks(self, check: Callable[[], None], replayed: bool) -> None:
        """Give the output to the sinks; `check` raises if another driver has the checkpoint.

        It is called before every call of a sink, a retry included. A batch that is `replayed` may
        be in the sinks already.
        """
        ...

    def write_channels(self) -> Written:
        """Write the rows of channels to files that no reader sees yet."""
        ...

    def reports(self, counting: Collection[str]) -> list[TaskReport]:
        """Run what has not run yet; what every task reported, once each."""
        ...

    def release(self) -> None:
        """Free what the batch held. Called in any case."""
        ...


@dataclass(frozen=True, slots=True)
class Done:
    """What a committed micro-batch leaves for the measurements."""

    plan: BatchPlan
    replayed: bool
    """Whether an earlier try had written its plan."""
    reports: tuple[TaskReport, ...]
    sources: tuple[SourceCount, ...]


@dataclass(slots=True)
class Transactions:
    """Runs the micro-batches of one segment as transactions."""

    segment: Segment
    checkpoint: Checkpoint
    allocation: NextAllocation
    counts: SourceTotals
    lease: Lease
    clean_later: Callable[[str, Callable[[], None]], None]
    """Takes a job that cleans up, under a name; a later job of that name may replace it. It must
    not raise, and a batch does not wait for it."""
    idle_after_us: int = IDLE_US
    """From when on a source without rows does not hold back the watermark."""
    rule: KeptVersions = field(default_factory=KeptVersions)
    """Which versions of the state are kept."""
    _current: tuple[int, Manifest] | None = None
    """The last batch that is known to be committed, and what the segment has after it."""
    _older: OlderVersions | None = None
    """The older versions, where more are kept than a restart needs."""
    _fresh: bool = True
    """Whether this run has not run a batch yet: an earlier run may have begun or committed it."""
    _recent: deque[Mapping[str, Version]] = field(default_factory=lambda: deque(maxlen=KEPT + 1))
    """The versions of the last batches: those that are kept, and the one before them."""

    def __post_init__(self) -> None:
        if not self.rule.is_default:
            folder = self.checkpoint.segment(self.segment.name)
            self._older = OlderVersions(folder, self.manifests, self.rule)

    @property
    def plans(self) -> Plans:
        """Its plan files."""
        return Plans(self._folder("plans"), self.lease.epoch.mark, self.checkpoint.names)

    @property
    def manifests(self) -> Manifests:
        """Its committed versions."""
        return Manifests(self._folder("manifests"), self.checkpoint.states)

    def prepare(self) -> None:
        """Create directories, check what an earlier run left, and continue with its routes."""
        with self.lease.blamed():
            self._prepare()

    def _prepare(self) -> None:
        # Before anything is created: a refusal leaves no directory that a restored copy would meet.
        newest = newest_committed(self.segment, self.checkpoint)
        self.plans.directory.make()
        self.manifests.directory.make()
        for operator in self.segment.keyed:
            self.checkpoint.state(operator.name).make()
        for write in self.segment.writes:
            Log(self.checkpoint.channel(write.channel.name)).make()
        if newest is not None:
            versions = self.checkpoint.names.from_kept(self.manifests.load(newest).versions)
            needed = {n.name: versions[n.name] for n in self.segment.keyed if n.name in versions}
            self.manifests.verify(self.checkpoint.names.to_kept(needed))
        plan = self.plans.newest()
        if plan is not None:
            self.allocation.adopt(plan)
        self.counts.open()
        self.clean_later(f"tidy {self.segment.name}", self._tidy)

    def run(
        self,
        batch_id: int,
        work: Work,
        steps: Steps,
        new_plan: Callable[[Mapping[str, OperatorPlan]], BatchPlan],
        running: Callable[[BatchPlan], None] = lambda plan: None,
    ) -> Done | None:
        """Run one micro-batch. None: an earlier run has committed it, and there is nothing to do.

        `new_plan` plans a batch that has no plan yet; `running` is told the plan once it is
        written and the tasks are about to run.
        """
        with self.lease.blamed():
            return self._run(batch_id, work, steps, new_plan, running)

    def _run(
        self,
        batch_id: int,
        work: Work,
        steps: Steps,
        new_plan: Callable[[Mapping[str, OperatorPlan]], BatchPlan],
        running: Callable[[BatchPlan], None],
    ) -> Done | None:
        if self._fresh and self.manifests.exists(batch_id):
            # The manifest is the last step but Spark's own commit: sinks and channels have it all.
            self._current = (batch_id, self.manifests.load(batch_id))
            return None
        try:
            plan, replayed = self._planned(batch_id, work, steps, new_plan)
            self._fresh = False
            steps.reached(Step.PLANNED)
            before = self._before(batch_id)
            work.compile(plan, before.versions)
            steps.reached(Step.COMPILED)
            running(plan)
            work.write_sinks(self.lease.check, replayed)
            steps.reached(Step.SINKS_WRITTEN)
            written = work.write_channels()
            steps.reached(Step.CHANNELS_WRITTEN)
            reports = work.reports(self.counts.counting_maps(plan))
            steps.reached(Step.RAN)
        finally:
            work.release()
        self.lease.check()
        channels = self._hand_over(batch_id, before, written)
        steps.reached(Step.HANDED_OVER)
        sources = self.counts.enter(plan, reports)
        steps.reached(Step.ENTERED)
        after = {
            name: self._after(name, version, reports, plan.at_us)
            for name, version in before.versions.items()
        }
        kept = self.checkpoint.names.to_kept(after)
        self._current = (batch_id, self.manifests.commit(batch_id, kept, channels))
        steps.reached(Step.COMMITTED)
        self._recent.append(self._current[1].versions)
        recent = tuple(self._recent)
        self.clean_later(self.segment.name, lambda: self._clean(batch_id, recent))
        steps.reached(Step.CLEANED)
        return Done(plan, replayed, tuple(reports), sources)

    def _planned(
        self,
        batch_id: int,
        work: Work,
        steps: Steps,
        new_plan: Callable[[Mapping[str, OperatorPlan]], BatchPlan],
    ) -> tuple[BatchPlan, bool]:
        """The plan of a batch, written down, and whether an earlier try had made it.

        Only the first batch of a run can have been tried before. Its plan is written again under
        the new owner's mark, so that the next replay finds it whatever the old owner still writes.
        """
        earlier = None
        if self._fresh:
            earlier = self.plans.earlier(batch_id, self.lease.earlier_marks())
        if earlier is not None:
            plan = self.allocation.completed(earlier)
        else:
            plan = work.previewed(new_plan(work.operators()))
        steps.reached(Step.PREVIEWED)
        self.plans.write(plan)
        return plan, earlier is not None

    def _before(self, batch_id: int) -> Manifest:
        """What the segment has before a batch: from memory, or from the manifest before it."""
        shards = {operator.name: operator.shards for operator in self.segment.keyed}
        if batch_id == 0:
            found = Manifest({}, {})
        elif self._current is not None and self._current[0] == batch_id - 1:
            found = self._current[1]
        else:
            found = self.manifests.load(batch_id - 1)
        by_name = self.checkpoint.names.from_kept(found.versions)
        versions = {
            name: by_name[name] if name in by_name else Version.empty(count)
            for name, count in shards.items()
        }
        names = [write.channel.name for write in self.segment.writes]
        channels = {
            name: found.channels[name] if name in found.channels else self._handed(name, batch_id)
            for name in names
        }
        return Manifest(versions, channels)

    def _handed(self, channel: str, batch_id: int) -> int:
        """The last batch in a channel, where the manifest does not say: it is of an older version
        of Tidegate, or the channel is new.
        """
        log = Log(self.checkpoint.channel(channel))
        return max((one.batch_id for one in log.waiting(0) if one.batch_id < batch_id), default=-1)

    def _hand_over(self, batch_id: int, before: Manifest, written: Written) -> dict[str, int]:
        return {
            name: Log(self.checkpoint.channel(name)).commit(
                batch_id, previous, written.get(name, [])
            )
            for name, previous in before.channels.items()
        }

    def _after(self, name: str, version: Version, reports: list[TaskReport], at_us: int) -> Version:
        own = [report for report in reports if report.operator == name]
        changes = [report.change for report in own if report.change is not None]
        node = next(node for node in self.segment.keyed if node.name == name)
        sources = origins_of(self.segment).told_apart(node) or (ALL,)
        return version.after(
            changes,
            newest_of(own),
            node.bound.delay_us,
            sources=sources,
            at_us=at_us,
            idle_after_us=self.idle_after_us,
        )

    def _clean(self, batch_id: int, recent: tuple[Mapping[str, Version], ...]) -> None:
        """Remove what nobody can need after the commit of a batch."""
        if self._older is not None:
            self._older.clean(batch_id)
        elif len(recent) >= KEPT:
            fallen = recent[0] if len(recent) > KEPT else None
            self.manifests.clean(batch_id, recent[-KEPT:], fallen)
        self.plans.clean(batch_id)
        self.counts.ledger.clean(batch_id)
        for write in self.segment.writes:
            Log(self.checkpoint.channel(write.channel.name)).clean(batch_id)

    def _tidy(self) -> None:
        """After a start, remove what earlier runs left behind."""
        self.manifests.tidy()
        tidy_older(self.checkpoint.segment(self.segment.name), self.manifests)
        for write in self.segment.writes:
            Log(self.checkpoint.channel(write.channel.name)).sweep()

    def _folder(self, name: str) -> Durable:
        return self.checkpoint.segment(self.segment.name).below(name)
