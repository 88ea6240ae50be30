"""Traces on the rows of a micro-batch, against one pair after the other."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.learning.traces import arrival_us, weights
from tidegate.pipelines.derived import Derived
from tidegate.spark.batch import traces as module
from tidegate.spark.batch.channel import ChannelReader, ChannelTask, Log
from tidegate.spark.batch.map_task import MapStage, MapTask
from tidegate.spark.batch.traces import ARROW_TYPE, FIELD, Marks, TraceSample
from tidegate.spark.batch.worker import ORIGIN, TRACE, packed
from tidegate.spark.state.files import Durable

Lists = list[list[int]]


class Told:
    """An accumulator of its own."""

    def __init__(self) -> None:
        self.reports = []

    def add(self, reports: list) -> None:
        self.reports += reports


def column_of(lists: list[list[int] | None]) -> pa.Array:
    """The hidden column, with a null for a row without traces."""
    packed = [None if not one else np.array(one, dtype=">i8").tobytes() for one in lists]
    return pa.array(packed, ARROW_TYPE)


def unpacked(column: pa.Array | pa.ChunkedArray) -> list[list[int] | None]:
    return [
        None if one is None else np.frombuffer(one, dtype=">i8").tolist()
        for one in column.to_pylist()
    ]


def marks_of(lists: Lists) -> Marks:
    column = column_of(lists)
    return Marks.of(pa.table({TRACE: column}))


def lists_of(marks: Marks, rows: int) -> Lists:
    column = marks.column(rows)
    assert column.type == ARROW_TYPE and len(column) == rows
    column.validate(full=True)
    assert all(one is None or one for one in unpacked(column)), "null, and not an empty list"
    return [sorted(one or []) for one in unpacked(column)]


some_lists = st.lists(st.lists(st.integers(1, 9), max_size=3, unique=True), max_size=30)


@given(some_lists, st.integers(0, 60))
@settings(max_examples=80, deadline=None)
def test_no_trace_is_lost_while_a_row_is_left_to_carry_it(lists: Lists, made: int) -> None:
    passed = lists_of(marks_of(lists).passed(len(lists), made, None), made)
    before, after = ({one for row in rows for one in row} for rows in (lists, passed))
    assert after == (before if made else set())
    if made == len(lists):
        assert passed == [sorted(row) for row in lists]
    if lists and made and made % len(lists) == 0:
        times = made // len(lists)
        assert passed == [sorted(row) for row in lists for _ in range(times)]


@given(some_lists, st.integers(0, 2**16))
@settings(max_examples=80, deadline=None)
def test_derived_rows_have_the_traces_of_their_parents(lists: Lists, seed: int) -> None:
    random = Random(seed)
    parents = [random.randrange(len(lists)) for _ in range(20 if lists else 0)]
    marks = marks_of(lists).passed(len(lists), len(parents), np.array(parents, dtype=np.int64))
    assert lists_of(marks, len(parents)) == [sorted(lists[parent]) for parent in parents]


@given(some_lists, st.integers(0, 2**16), st.booleans())
@settings(max_examples=80, deadline=None)
def test_output_of_a_key_has_the_traces_of_all_its_rows(
    lists: Lists, seed: int, narrow: bool
) -> None:
    random = Random(seed)
    keys = [(random.choice(["a", "b", None]), random.randrange(2)) for _ in lists]
    out = [(random.choice(["a", "b", "c", None]), random.randrange(2)) for _ in range(8)]
    kind = pa.int32() if narrow else pa.int64()

    def table(of: list, number: pa.DataType) -> pa.Table:
        return pa.table(
            {
                "k": pa.array([key for key, _ in of], pa.string()),
                "n": pa.array([n for _, n in of], number),
            }
        )

    marks = marks_of(lists)
    of_pairs = table(keys, pa.int64()).take(pa.array(marks.places))
    grouped = lists_of(marks.grouped(of_pairs, table(out, kind)), len(out))
    expected = [
        sorted({one for row, key in zip(lists, keys, strict=True) if key == other for one in row})
        for other in out
    ]
    assert grouped == expected


def test_output_without_the_key_gets_all_traces_spread_over_it() -> None:
    marks = marks_of([[4], [], [2, 6], [2]])
    keys = pa.table({"k": [1, 3, 3, 4]})
    output = pa.table({"total": [10, 20]})
    assert lists_of(marks.grouped(keys, output), 2) == [[2, 4], [6]]
    nested = pa.table({"k": pa.array([[1], [3], [3], [4]])})
    assert lists_of(marks.grouped(nested, nested.slice(0, 2)), 2) == [[2, 4], [6]]
    assert len(marks.grouped(keys, output.slice(0, 0)).traces) == 0


def test_a_key_with_very_many_rows_and_traces_keeps_each_trace_once(monkeypatch) -> None:
    monkeypatch.setattr(module, "_MOST_PAIRS", 6)
    marks = marks_of([[4], [2], [6]])
    keys = pa.table({"k": [1, 1, 2]})
    output = pa.table({"k": [3, 1, 2, 1, 2]})
    assert lists_of(marks.grouped(keys, output), 5) == [[], [2, 4], [6], [2, 4], [6]]
    monkeypatch.setattr(module, "_MOST_PAIRS", 5)
    assert lists_of(marks.grouped(keys, output), 5) == [[], [2, 4], [6], [], []]


def test_a_key_that_is_fed_back_for_ever_keeps_its_newest_traces(monkeypatch) -> None:
    monkeypatch.setattr(module, "_MOST_OF_KEY", 2)
    marks = marks_of([[4, 9], [2], [6]])
    keys = pa.table({"k": [1, 1, 1, 2]})
    assert lists_of(marks.grouped(keys, pa.table({"k": [1, 2]})), 2) == [[4, 9], [6]]


def test_a_slice_of_a_column_has_the_traces_of_its_rows() -> None:
    table = pa.table({TRACE: column_of([[1], None, [-2, 3], [4]])}).slice(1, 2)
    marks = Marks.of(table)
    assert marks.places.tolist() == [1, 1] and marks.traces.tolist() == [-2, 3]
    assert marks.born.tolist() == [2] and marks.settled.traces.tolist() == [2, 3]
    assert len(Marks.of(pa.table({"k": [1]})).traces) == 0


def mapped(function, block: pa.Table, *, origins: bool = False) -> tuple[list, list[int]]:
    """What a map operator makes of one block: rows with traces, and the inputs that it reports."""
    stage = MapStage(
        "twice", function, pa.schema([("n", pa.int64())]), origins=origins, traced=True
    )
    told = Told()
    blocks = MapTask(packed(stage), 0, told)(iter(block.to_batches()))
    rows = [
        pair
        for one in blocks
        for pair in zip(one["n"].to_pylist(), unpacked(one[TRACE]), strict=True)
    ]
    (report,) = told.reports
    return rows, [] if report.born is None else sorted(report.born.tolist())


BLOCK = pa.table({"n": [1, 2, 3], TRACE: column_of([[-10], None, [20]])})


def test_a_map_passes_traces_on_and_its_function_does_not_see_them() -> None:
    def same(rows: pa.Table) -> pa.Table:
        assert rows.column_names == ["n"]
        return rows

    assert mapped(same, BLOCK) == ([(1, [10]), (2, None), (3, [20])], [10])
    assert mapped(lambda t: t.slice(0, 0), BLOCK) == ([], [10]), "inputs that end here are reported"


def test_the_last_operator_in_front_of_a_cut_tells_what_leaves_it() -> None:
    stage = MapStage(
        "last", lambda rows: rows.slice(2), pa.schema([("n", pa.int64())]), traced=True, tells=True
    )
    told = Told()
    (rows,) = MapTask(packed(stage), 0, told)(iter(BLOCK.to_batches()))
    assert rows.schema.names == ["n"], "no column carries the traces"
    (report,) = told.reports
    assert report.born.tolist() == [10]
    assert report.left.tolist() == [10, 20], "the row that is left stands for all"


def test_a_map_that_says_which_row_became_which_is_followed_exactly() -> None:
    def backwards(rows: pa.Table) -> Derived:
        parents = [2, 2, 1]
        return Derived(rows.take(parents), parents)

    assert mapped(backwards, BLOCK) == ([(3, [20]), (3, [20]), (2, None)], [10])
    mask = pa.array([False, None, True])
    assert mapped(lambda t: Derived(t.filter(mask), mask), BLOCK) == ([(3, [20])], [10])


def test_rows_of_several_origins_keep_their_own_traces() -> None:
    block = BLOCK.append_column(ORIGIN, pa.array([1, 0, 1], pa.int32()))

    def last_twice(rows: pa.Table) -> Derived:
        parents = [rows.num_rows - 1] * 2
        return Derived(rows.take(parents), parents)

    rows, born = mapped(last_twice, block, origins=True)
    assert rows == [(2, None), (2, None), (3, [20]), (3, [20])] and born == [10]


@pytest.mark.parametrize(
    ("parents", "error"),
    [
        ([0], "parents names 1 input rows for 3 returned rows; name one for each"),
        ([0, 1, 3], "parents has positions from 0 to 3, but the function was given 3 rows"),
        ([True, True], "parents has 2 booleans for 3 input rows; give one for each"),
        ([0.5, 1.0, 2.0], "parents is of type float64, expected positions of input rows"),
    ],
)
def test_wrong_parents_are_refused_in_a_sentence(parents: list, error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        Derived(BLOCK.select(["n"]), parents).positions(3)


def channel(tmp_path, *, passes: bool) -> tuple[pa.RecordBatch, Told, Log, str]:
    log = Log(Durable(str(tmp_path / str(passes))))
    log.make()
    told = Told()
    task = ChannelTask("between", log.data, 0, told, passes)
    (result,) = task(iter(BLOCK.to_batches()))
    return result, told, log, result.to_pylist()[0]["file"]


def test_a_channel_tells_the_driver_of_its_traces_and_passes_them_on_if_needed(tmp_path) -> None:
    for passes in (True, False):
        result, told, log, name = channel(tmp_path, passes=passes)
        assert result.to_pylist()[0]["traces"] == [10, 20]
        assert told.reports[0].born.tolist() == [10] and told.reports[0].rows_out == 3
        with log.data.open(name) as stream:
            written = pa.ipc.open_file(stream).read_all()
        assert written.column_names == (["n", TRACE] if passes else ["n"])
        if passes:
            assert unpacked(written[TRACE]) == [[10], None, [20]]


def test_files_with_and_without_traces_can_be_read_either_way(tmp_path) -> None:
    for passes in (True, False):
        _, _, log, name = channel(tmp_path, passes=passes)
        for wanted in (["n"], ["n", TRACE]):
            reader = ChannelReader(log, wanted)
            log.commit(0, -1, [(name, 3)])
            (part,) = reader.partitions({"batches": 0}, {"batches": 1})
            (block,) = reader.read(part)
            assert block.schema.names == wanted
            assert block.column("n").to_pylist() == [1, 2, 3]
            if TRACE in wanted:
                assert block.schema.field(TRACE).type == FIELD.type
                expected = [[10], None, [20]] if passes else [None] * 3
                assert unpacked(block.column(TRACE)) == expected


@pytest.mark.parametrize("every", [1, 10])
def test_an_operator_samples_by_the_place_of_a_row_in_its_partition(every: int) -> None:
    """Two partitions, mixed by a shuffle; some rows have no arrival."""
    places = np.concatenate([np.arange(9_000), np.arange(9_000)])
    parts = np.repeat([0, 1], 9_000)
    order = np.random.default_rng(3).permutation(18_000)
    places, parts = places[order], parts[order]
    micros = 1_700_000_000_000_000 + places * 7
    at = pa.array(micros, mask=places % 5 == 0).cast(pa.timestamp("us", "UTC"))
    marks = TraceSample("at", every).of(pa.table({"at": at}), places + (parts << 33))
    scaled = places // every
    strides = np.select([scaled < 512, scaled < 8192], [1, 16], 256)
    chosen = (places % every == 0) & (scaled % strides == 0) & (places % 5 != 0)
    assert marks.places.tolist() == np.flatnonzero(chosen).tolist()
    assert (arrival_us(marks.born) == micros[chosen]).all()
    assert (weights(marks.born) == strides[chosen]).all()
    assert len(np.unique(marks.born)) == len(marks.born)
