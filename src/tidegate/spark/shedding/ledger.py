"""Rows offered and kept, per source: of each micro-batch, and in all since counting began.

The counts of a batch come from what its tasks reported. The totals after a batch are one small
file, written before Spark commits the batch. A replay of the batch starts from the totals before
it, so no row is counted twice. A pipeline that was never shed and has not asked for counts has no
ledger, and pays for none.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tidegate.control.row_counts import ClassCount, SourceCount, added
from tidegate.pipelines.graph import Segment, Source
from tidegate.pipelines.walks import first_reader, origins
from tidegate.spark.batch.plan import BatchPlan
from tidegate.spark.batch.report import ShedCounts, TaskReport, combining
from tidegate.spark.shedding.sources import ShedSources
from tidegate.spark.shedding.task import ShedStage
from tidegate.spark.state.files import Durable

_KEPT = 8
_UNKNOWN = -2
"""No batch: the totals that an earlier run left may already hold the batch that is replayed."""
Totals = dict[str, SourceCount]


@dataclass(slots=True)
class SourceTotals:
    """Counts the rows of a segment's sources, and keeps the ledger where there is one."""

    segment: Segment
    sources: ShedSources
    ledger: "Ledger"
    _newest: tuple[int, Totals] | None = None
    """The last batch in the ledger, and the totals after it; None: no ledger is kept."""

    @property
    def totals(self) -> Totals:
        """Rows offered and kept since counting began, per source."""
        return {} if self._newest is None else dict(self._newest[1])

    def open(self) -> None:
        """At a start: keep a ledger if a source says `.shed(...)`, or if there is one already."""
        asked = any(isinstance(n, Source) and n.shedding for n in self.segment.reads)
        if asked or self.ledger.begun():
            self._newest = (_UNKNOWN, self.ledger.newest())

    def counting_maps(self, plan: BatchPlan) -> list[str]:
        """Maps whose tasks must all run in this batch, because they count the rows of a source."""
        return self.sources.counting_maps() if self._counts(plan) else []

    def enter(self, plan: BatchPlan, reports: list[TaskReport]) -> tuple[SourceCount, ...]:
        """The counts of a batch, put into the ledger on top of the batch before it."""
        counts = counted(self.segment, self.sources, plan, reports)
        if self._counts(plan):
            before = plan.batch_id - 1
            known = self._newest is not None and self._newest[0] == before
            totals = self.totals if known else self.ledger.after(before)
            self._newest = (plan.batch_id, self.ledger.enter(plan.batch_id, totals, counts))
        return counts

    def _counts(self, plan: BatchPlan) -> bool:
        """Whether every row of this batch is counted: it sheds, or a ledger is kept."""
        return self._newest is not None or self.sources.sheds(plan)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The files with the totals of one segment's sources."""

    directory: Durable

    def begun(self) -> bool:
        """Whether any batch has been entered."""
        return bool(self.directory.names())

    def after(self, batch_id: int) -> Totals:
        """The totals after a batch; empty when counting began later."""
        if batch_id < 0 or not self.directory.exists(_name(batch_id)):
            return {}
        document = self.directory.read_json(_name(batch_id))
        return {entry["name"]: _count(entry) for entry in document["sources"]}

    def newest(self) -> Totals:
        """The totals after the last batch that was entered."""
        names = self.directory.names()
        return self.after(int(names[-1].removesuffix(".json"))) if names else {}

    def enter(self, batch_id: int, before: Totals, counts: tuple[SourceCount, ...]) -> Totals:
        """Write the totals after a batch: those before it, and its own counts.

        An earlier try of the batch has counted the same rows. What it wrote stays, and is adopted.
        """
        totals = dict(before)
        for count in counts:
            known = totals.get(count.name)
            totals[count.name] = count if known is None else added(known, count)
        self.directory.make()
        document = {"sources": [asdict(count) for count in totals.values()]}
        content = json.dumps(document, separators=(",", ":")).encode()
        if self.directory.create(_name(batch_id), content):
            return totals
        return self.after(batch_id)

    def clean(self, batch_id: int) -> None:
        """Remove the totals of batches long before this one."""
        self.directory.sweep((), batch_id - _KEPT)


def counted(
    segment: Segment,
    sources: ShedSources,
    plan: BatchPlan,
    reports: list[TaskReport],
) -> tuple[SourceCount, ...]:
    """Rows that a micro-batch was offered and kept, per source.

    While a segment sheds, its sources count their own rows. Otherwise the first operator that reads
    a source counts them, which costs nothing. Sources that it reads through one merge are counted
    together, under their names joined by '+'. Sources that are merged with the rows of a loop, or
    that no operator reads, are not counted until they are shed.
    """
    stages = sources.stages
    if sources.sheds(plan):
        return tuple(
            source_count(
                stage, [r.shed for r in reports if r.operator == name and r.shed is not None]
            )
            for name, stage in stages.items()
        )
    found: list[SourceCount] = []
    firsts = [first_reader(segment, name) for name in stages]
    for reader in dict.fromkeys(first.name for first in firsts if first is not None):
        read = origins(segment, reader)
        if not all(isinstance(node, Source) for node in read):
            continue
        own = [report for report in reports if report.operator == reader]
        rows = sum(report.rows_in for report in own)
        in_front = [report for report in reports if report.operator == combining(reader)]
        names = sorted(node.name for node in read)
        classes: tuple[str, ...] = stages[names[0]].classes if len(names) == 1 else ()
        parts = [one.class_rows for one in (*in_front, *own) if one.class_rows]
        by_class = [sum(part) for part in zip(*parts, strict=True)] or [0] * len(classes)
        found.append(
            SourceCount(
                name="+".join(names),
                offered=rows,
                kept=rows,
                classes=tuple(
                    ClassCount(name=name, offered=count, kept=count)
                    for name, count in zip(classes, by_class, strict=True)
                ),
            )
        )
    return tuple(found)


def source_count(stage: ShedStage, parts: list[ShedCounts]) -> SourceCount:
    """The count of a source that sheds, from the counts of its partitions."""
    by_class = np.zeros((max(1, len(stage.classes)), 2), dtype=np.int64)
    for part in parts:
        by_class += np.asarray(part.classes, dtype=np.int64)
    groups = np.zeros((2, stage.shards), dtype=np.int64)
    for part in parts:
        if part.groups is not None:
            groups += np.stack(part.groups)
    return SourceCount(
        name=stage.source,
        offered=int(by_class[:, 0].sum()),
        kept=int(by_class[:, 1].sum()),
        classes=tuple(
            ClassCount(name=name, offered=int(offered), kept=int(kept))
            for name, (offered, kept) in zip(stage.classes, by_class, strict=False)
        ),
        groups_offered=tuple(groups[0].tolist()),
        groups_kept=tuple(groups[1].tolist()),
    )


def _count(entry: dict[str, Any]) -> SourceCount:
    return SourceCount(
        name=entry["name"],
        offered=entry["offered"],
        kept=entry["kept"],
        classes=tuple(ClassCount(**part) for part in entry["classes"]),
        groups_offered=tuple(entry["groups_offered"]),
        groups_kept=tuple(entry["groups_kept"]),
    )


def _name(batch_id: int) -> str:
    return f"{batch_id:010d}.json"
