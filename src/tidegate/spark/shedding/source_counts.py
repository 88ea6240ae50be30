"""Counts of a micro-batch's sources, from what its tasks reported."""

from collections.abc import Mapping

from tidegate.control.row_counts import ClassCount, SourceCount
from tidegate.pipelines.graph import Segment, Source
from tidegate.pipelines.walks import first_reader, origins
from tidegate.spark.batch.plan import BatchPlan
from tidegate.spark.batch.report import TaskReport
from tidegate.spark.shedding.task import ShedStage, sheds, source_count


def counted(
    segment: Segment,
    stages: Mapping[str, ShedStage],
    plan: BatchPlan,
    reports: list[TaskReport],
) -> tuple[SourceCount, ...]:
    """Rows offered and kept, per source.

    While a segment sheds, its sources count their own rows. Otherwise the first operator that
    reads a source counts them, which costs nothing; sources that it reads as one are counted as
    one, under their names joined by '+', and those that it reads together with a loop's rows, or
    that no operator reads, are not counted until they are shed.
    """
    if sheds(plan, stages):
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
        names = sorted(node.name for node in read)
        classes: tuple[str, ...] = stages[names[0]].classes if len(names) == 1 else ()
        parts = [report.class_rows for report in own if report.class_rows]
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
