"""Counts of a batch from what its tasks reported, and their totals on disk."""

import itertools

import numpy as np
import pyarrow as pa

from tests.helpers.interrupted import Interrupted
from tidegate.control.row_counts import ClassCount, SourceCount, added
from tidegate.control.shedding.keep import Keep
from tidegate.pipelines.graph import Map, Merge, Node, Segment, Source, TaskBounds
from tidegate.pipelines.shedding import OTHER, ShedClass, Shedding
from tidegate.spark.batch.plan import BatchPlan
from tidegate.spark.batch.report import ShedCounts, TaskReport
from tidegate.spark.shedding.ledger import Ledger, SourceTotals
from tidegate.spark.shedding.sources import ShedSources
from tidegate.spark.state import files
from tidegate.spark.state.files import Durable

ROWS = pa.schema([("tier", pa.string())])
CLASSES = {"gold": ShedClass(), OTHER: ShedClass()}
SHEDDING = Shedding(by="tier", classes=CLASSES, key=("tier",), shards=2)


def source(name: str, shedding: Shedding | None = None) -> Source:
    return Source(name=name, inputs=(), schema=ROWS, frame=None, shedding=shedding)


def reader(name: str, tasks: TaskBounds | None = None) -> Map:
    return Map(name="m", inputs=(name,), schema=ROWS, function=lambda table: table, tasks=tasks)


def segment_of(*nodes: Node) -> Segment:
    return Segment("main", nodes, tuple(n for n in nodes if isinstance(n, Source)), ())


def totals_of(tmp_path, segment: Segment) -> SourceTotals:
    ledger = Ledger(Durable(str(tmp_path / "counts")))
    found = SourceTotals(segment, ShedSources(segment, accumulator=None), ledger)
    found.open()
    return found


def told(operator: str, task: int, rows: int, **more) -> TaskReport:
    return TaskReport(
        batch_id=0,
        operator=operator,
        task=task,
        rows_in=rows,
        rows_out=rows,
        busy_s=0.1,
        function_s=0.1,
        executor="here",
        started_s=0.0,
        **more,
    )


def test_a_replayed_batch_is_in_the_ledger_once(tmp_path) -> None:
    ledger = Ledger(Durable(str(tmp_path / "counts")))
    assert ledger.after(0) == {}
    count = SourceCount(
        name="source",
        offered=10,
        kept=4,
        classes=(ClassCount(name="gold", offered=3, kept=3),),
        groups_offered=(6, 4),
        groups_kept=(2, 2),
    )
    first = ledger.enter(0, {}, (count,))
    ledger.enter(1, first, (count,))
    ledger.enter(1, ledger.after(0), (count,))
    assert ledger.newest() == {"source": added(count, count)}
    assert ledger.newest()["source"].shed == 12
    assert ledger.newest()["source"].classes[0].kept == 6
    assert ledger.newest()["source"].groups_kept == (4, 4)


def test_a_driver_that_was_paused_takes_no_totals_away(monkeypatch) -> None:
    """It wakes up while its successor goes on from the totals of the batch, and dies."""
    ledger = Ledger(Durable("slow:///ck/counts"))
    count = SourceCount(name="source", offered=10, kept=4)
    replayed = []

    def succeed() -> None:
        replayed.append(ledger.enter(0, {}, (count,)))

    for at, more in itertools.product(range(12), range(12)):
        handler = Interrupted(at, more, succeed)
        monkeypatch.setattr(files, "_filesystem", handler.by_url)
        replayed.clear()
        with handler.watched():
            ledger.enter(0, {}, (count,))
        if replayed:
            assert ledger.after(0) == replayed[0] == {"source": count}, (at, more)
    assert not replayed, "it was paused before each of its operations, and at last before none"


def test_without_shedding_the_first_reader_counts_and_no_ledger_is_kept(tmp_path) -> None:
    merge = Merge(name="both", inputs=("b", "a"), schema=ROWS)
    totals = totals_of(tmp_path, segment_of(source("b"), source("a"), merge, reader("both")))
    counts = totals.enter(BatchPlan(0, 1), [told("m", 0, 3), told("m", 1, 4)])
    assert counts == (SourceCount(name="a+b", offered=7, kept=7),)
    assert totals.totals == {}
    assert not (tmp_path / "counts").exists()


def test_a_ledger_that_was_asked_for_counts_by_class_from_the_first_batch(tmp_path) -> None:
    segment = segment_of(source("a", SHEDDING), reader("a"))
    totals = totals_of(tmp_path, segment)
    reports = [told("m", 0, 3, class_rows=(1, 2)), told("m", 1, 4, class_rows=(0, 4))]
    (count,) = totals.enter(BatchPlan(0, 1), reports)
    assert [(part.name, part.kept) for part in count.classes] == [("gold", 1), (OTHER, 6)]
    assert totals.totals == {"a": count}
    again = totals_of(tmp_path, segment)
    assert again.totals == {"a": count}
    assert again.enter(BatchPlan(0, 1), reports) == (count,)
    assert again.totals == {"a": count}, "a replay counts on top of the batch before"


def test_while_a_segment_sheds_its_sources_count_themselves(tmp_path) -> None:
    totals = totals_of(tmp_path, segment_of(source("a", SHEDDING), reader("a")))

    def shed(classes: tuple[tuple[int, int], ...], offered: list[int], kept: list[int]):
        return ShedCounts(classes=classes, groups=(np.array(offered), np.array(kept)))

    reports = [
        told("a", 0, 8, shed=shed(((3, 3), (5, 2)), [6, 2], [4, 1])),
        told("a", 1, 2, shed=shed(((1, 1), (1, 0)), [1, 1], [0, 1])),
        told("m", 0, 6),
    ]
    (count,) = totals.enter(BatchPlan(0, 1, {}, Keep(0.5)), reports)
    assert (count.offered, count.kept, count.shed) == (10, 6, 4)
    assert [(part.offered, part.kept) for part in count.classes] == [(4, 4), (6, 2)]
    assert (count.groups_offered, count.groups_kept) == ((7, 3), (4, 2))


def test_a_map_with_tasks_must_run_whole_where_its_rows_are_counted(tmp_path) -> None:
    segment = segment_of(source("a"), reader("a", TaskBounds(1, 4)))
    totals = totals_of(tmp_path, segment)
    assert totals.counting_maps(BatchPlan(0, 1)) == []
    assert totals.counting_maps(BatchPlan(0, 1, {}, Keep(0.5))) == ["m"]
    where_rows_are = totals_of(tmp_path, segment_of(source("a"), reader("a")))
    assert where_rows_are.counting_maps(BatchPlan(0, 1, {}, Keep(0.5))) == []
