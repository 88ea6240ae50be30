"""Which rows are kept: by chance, the same ones again, and every one is counted."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.control.row_counts import ClassCount, SourceCount, added
from tidegate.spark.shedding.ledger import source_count
from tidegate.spark.shedding.task import PART, ROW, Copies, RowShedder, ShedStage, draw


def block(rows: list[int], names: list[str] | None = None, part: int = 0) -> pa.RecordBatch:
    columns = {
        "id": pa.array(range(len(rows)), pa.int64()),
        ROW: pa.array(rows, pa.int64()),
        PART: pa.array([part] * len(rows), pa.int32()),
    }
    if names is not None:
        columns["tier"] = pa.array(names)
    return pa.RecordBatch.from_pydict(columns)


def fates(rows: np.ndarray, cuts: list[int], batch_id: int = 7, keep: float = 0.4) -> set[int]:
    """The rows that are kept when the source is cut into partitions at these places."""
    found: set[int] = set()
    for part, piece in enumerate(np.split(rows, cuts)):
        shedder = RowShedder(ShedStage("source"), batch_id, (keep,))
        kept = shedder.kept(block(piece.tolist(), part=part))
        found |= set(piece[kept["id"].to_numpy()].tolist())
    return found


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 299), max_size=5), st.integers(0, 2**40))
def test_other_partitions_keep_the_same_rows(cuts: list[int], batch_id: int) -> None:
    rows = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 300)
    assert fates(rows, sorted(cuts), batch_id) == fates(rows, [], batch_id)


def test_every_batch_draws_anew_and_every_source_too() -> None:
    rows = np.random.default_rng(2).integers(0, 2**63 - 1, 20_000).view(np.uint64)
    none = np.zeros(len(rows), dtype=np.uint64)
    one, other = draw(rows, none, "a", 1), draw(rows, none, "a", 2)
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03
    assert abs(np.corrcoef(one, draw(rows, none, "b", 1))[0, 1]) < 0.03
    assert np.histogram(one, bins=10, range=(0, 1))[0].min() > 1800
    assert one.max() < 1.0


def test_a_version_that_comes_later_draws_the_same_numbers() -> None:
    """A batch that an older version began may be replayed by a newer one."""
    rows = np.array([0, 1, 2**63], dtype=np.uint64)
    copies = np.array([0, 0, 5], dtype=np.uint64)
    drawn = draw(rows, copies, "source", 7).tolist()
    assert drawn == [0.10722510185142797, 0.2012782175917367, 0.5340652055648913]


def test_a_smaller_fraction_keeps_some_of_what_a_larger_one_keeps() -> None:
    rows = np.random.default_rng(3).integers(0, 2**62, 2000)
    assert fates(rows, [], keep=0.2) < fates(rows, [], keep=0.6)


def test_rows_that_are_alike_are_shed_one_by_one() -> None:
    shedder = RowShedder(ShedStage("source"), 0, (0.3,))
    sizes = [shedder.kept(block([5] * 4000)).num_rows for _ in range(3)]
    assert all(1080 <= size <= 1320 for size in sizes)
    again = RowShedder(ShedStage("source"), 0, (0.3,))
    assert [again.kept(block([5] * 4000)).num_rows for _ in range(3)] == sizes
    assert len(set(sizes)) > 1


def test_copies_are_numbered_across_blocks() -> None:
    copies = Copies()
    first = copies.number(np.array([3, 1, 3, 3], dtype=np.uint64))
    second = copies.number(np.array([1, 2, 3, 2], dtype=np.uint64))
    third = copies.number(np.array([2, 3], dtype=np.uint64))
    assert [first.tolist(), second.tolist(), third.tolist()] == [
        [0, 0, 1, 2],
        [1, 0, 3, 1],
        [2, 4],
    ]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["gold", "free", "new", None]), max_size=60), st.integers(0, 99))
def test_offered_is_kept_and_shed_to_the_row(names: list[str | None], seed: int) -> None:
    stage = ShedStage("source", by="tier", classes=("gold", "free", "other"))
    shedder = RowShedder(stage, seed, (1.0, 0.0, 0.5))
    kept = shedder.kept(block(list(range(len(names))), names))
    count = source_count(stage, [shedder.counts()])
    by_name = {part.name: part for part in count.classes}
    others = sum(name not in ("gold", "free") for name in names)
    assert count.offered == len(names) == sum(part.offered for part in count.classes)
    assert count.kept == kept.num_rows == sum(part.kept for part in count.classes)
    assert by_name["gold"].shed == 0
    assert by_name["gold"].offered == names.count("gold")
    assert by_name["free"].kept == 0
    assert by_name["other"].offered == others
    assert count.shed == len(names) - kept.num_rows


def test_a_record_with_counts_comes_back_and_an_older_one_without() -> None:
    count = SourceCount(
        name="s", offered=5, kept=2, classes=(ClassCount(name="c", offered=5, kept=2),)
    )
    measurement = Measurement(
        at_s=1.0,
        interval_s=1.0,
        arrival_rate=5.0,
        processed_rate=2.0,
        backlog_rows=0.0,
        cores_asked=1,
        cores_granted=1,
        saturated=False,
        keep=0.4,
        keep_by_class={"c": 0.4},
        sources=(count,),
    )
    decision = Decision(reason="shed", keep=0.4, keep_by_class={"c": 0.4})
    record = Record(
        tick=1, policy="p", target_s=1.0, measurement=measurement, decision=decision, acted=True
    )
    line = record.to_json()
    assert Record.from_json(line) == record
    older = (
        line.replace(',"keep_by_class":{"c":0.4}', "")
        .replace(line[line.index(',"sources":') : line.index('},"decision"')], "")
        .replace(',"keep":0.4', "", 1)
    )
    assert "sources" not in older
    loaded = Record.from_json(older)
    assert loaded.measurement.keep == 1.0
    assert loaded.measurement.sources == ()


def test_a_decision_that_sheds_does_not_hold() -> None:
    assert Decision(reason="").holds
    assert not Decision(reason="", keep=1.0).holds
    assert not Decision(reason="", keep_by_class={"a": 0.5}).holds


def test_counts_by_other_key_groups_start_anew() -> None:
    one = SourceCount(name="s", offered=1, kept=1, groups_offered=(1,), groups_kept=(1,))
    two = SourceCount(name="s", offered=2, kept=2, groups_offered=(1, 1), groups_kept=(1, 1))
    assert added(one, two).groups_offered == (1, 1)
    assert added(one, SourceCount(name="s", offered=2, kept=2)).groups_offered == (1,)
    assert added(one, two).offered == 3


@pytest.mark.parametrize("keep", [0.0, 1.0])
def test_all_or_nothing(keep: float) -> None:
    shedder = RowShedder(ShedStage("source"), 0, (keep,))
    assert shedder.kept(block(list(range(500)))).num_rows == 500 * keep
