"""The calculator's answers equal the sequential reference, however the stream is cut."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.apps.micro.batches import SEED, Kept, tuples
from tidegate.apps.micro.calculator import FACTOR, PART, PAYLOAD, chained, digests_of
from tidegate.apps.micro.generator import (
    TUPLES,
    binary_column,
    generator,
    payload_words,
    words_of,
)
from tidegate.apps.micro.options import MicroOptions
from tidegate.apps.micro.reference import compare, reference
from tidegate.workload.parse import parse_profile

PROFILE = parse_profile("constant:500")
OPTIONS = MicroOptions(keys=40, omega=120.0, payload=24, state_kb=1.0, shards=8)


def kept(cuts: list[int], options: MicroOptions = OPTIONS) -> Kept:
    """A calculator that got the rows between the cuts, batch by batch."""
    made = Kept(options)
    for first, end in itertools.pairwise(cuts):
        made.add(tuples(PROFILE, options, first, end))
    return made


@given(st.lists(st.integers(1, 120), min_size=1, max_size=6), st.booleans())
@settings(max_examples=25, deadline=None)
def test_any_cut_gives_the_references_answers(lengths: list[int], fill: bool) -> None:
    options = MicroOptions(keys=40, omega=120.0, payload=24, state_kb=1.0, shards=8, fill=fill)
    cuts = [0, *itertools.accumulate(lengths)]
    expected = reference(PROFILE, options, SEED, cuts[-1])
    verdict = compare(kept(cuts, options).state, expected, options, SEED)
    assert verdict.correct, verdict.said
    assert verdict.figures["rows"] == cuts[-1]


def test_without_payload_there_is_none() -> None:
    options = MicroOptions(keys=40, payload=8, state_kb=0.0)
    state = kept([0, 100, 200], options).state
    assert pc.sum(pc.equal(state[PART], PAYLOAD)).as_py() == 0
    assert compare(state, reference(PROFILE, options, SEED, 200), options, SEED).correct


def test_a_payload_is_written_once() -> None:
    one = Kept(OPTIONS)
    rows = tuples(PROFILE, OPTIONS, 0, 400)
    keys = len(pc.unique(rows["key"]))
    assert one.add(rows) == 2 * keys
    assert one.add(rows) == keys


def test_with_fill_all_state_is_there_after_the_first_rows() -> None:
    options = MicroOptions(keys=40, state_kb=1.0, shards=8, fill=True)
    verdict = compare(
        kept([0, 40], options).state, reference(PROFILE, options, SEED, 40), options, SEED
    )
    assert verdict.correct
    assert verdict.figures["state_bytes"] == 40 * options.key_bytes


def changed(state: pa.Table, column: str, change: int) -> pa.Table:
    """The state with one number of one key off."""
    values = state[column].to_pylist()
    values[0] += change
    place = state.column_names.index(column)
    return state.set_column(place, column, pa.array(values, state[column].type))


WRONG = {
    "a row twice": lambda: kept([0, 150, 140, 300]).state,
    "a row lost": lambda: kept([0, 150]).state,
    "another count": lambda: changed(kept([0, 300]).state, "count", 1),
    "another sum": lambda: changed(kept([0, 300]).state, "total", 1),
    "another checksum": lambda: changed(kept([0, 300]).state, "checksum", 1),
    "a key too few": lambda: kept([0, 300]).state.slice(2),
    "a key twice": lambda: pa.concat_tables([kept([0, 300]).state] * 2),
    "another payload": lambda: (
        lambda state: state.set_column(
            5, "payload", pc.if_else(pc.is_null(state["payload"]), None, b"x" * OPTIONS.key_bytes)
        )
    )(kept([0, 300]).state),
}


@pytest.mark.parametrize("how", WRONG)
def test_a_wrong_answer_is_found(how: str) -> None:
    verdict = compare(WRONG[how](), reference(PROFILE, OPTIONS, SEED, 300), OPTIONS, SEED)
    assert not verdict.correct
    assert "\n" not in verdict.said


def test_the_order_of_a_keys_tuples_counts() -> None:
    swapped = Kept(OPTIONS)
    swapped.add(tuples(PROFILE, OPTIONS, 150, 300))
    swapped.add(tuples(PROFILE, OPTIONS, 0, 150))
    verdict = compare(swapped.state, reference(PROFILE, OPTIONS, SEED, 300), OPTIONS, SEED)
    assert verdict.figures["wrong_keys"] > 0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**64 - 1)), max_size=40))
def test_a_batch_of_checksums_is_one_after_the_other(rows: list[tuple[int, int]]) -> None:
    before = np.arange(5, dtype=np.uint64) * np.uint64(12345678901234567)
    expected = before.tolist()
    for key, digest in rows:
        expected[key] = (expected[key] * FACTOR + digest) % 2**64
    row_key = np.array([key for key, _ in rows], dtype=np.int64)
    digests = np.array([digest for _, digest in rows], dtype=np.uint64)
    after = chained(before, digests, row_key, np.bincount(row_key, minlength=5))
    assert after.tolist() == expected


def test_digests_are_the_words_one_after_the_other() -> None:
    content = payload_words(np.arange(7), SEED, 128, TUPLES)
    digest = np.zeros(7, dtype=np.uint64)
    for column in content.T:
        digest = digest * np.uint64(FACTOR) + column
    np.testing.assert_array_equal(digests_of(content), digest)


def test_payloads_survive_arrow_whatever_the_chunks() -> None:
    content = payload_words(np.arange(10), SEED, 24, TUPLES)
    column = pa.chunked_array([binary_column(content)])
    pieces = pa.chunked_array([column.chunk(0).slice(3, 4), column.chunk(0).slice(7, 3)])
    np.testing.assert_array_equal(words_of(column, 24), content)
    np.testing.assert_array_equal(words_of(pieces, 24), content[3:])
    assert words_of(pa.chunked_array([], pa.binary()), 24).shape == (0, 3)
    assert [len(one) for one in column.to_pylist()] == [24] * 10


def test_a_tuple_depends_on_its_number_alone() -> None:
    rows = pa.table({"key": np.arange(20), "value": np.zeros(20), "seq": np.arange(20) + 7})
    make = generator(OPTIONS, SEED)
    assert make(rows).slice(11, 5).equals(make(rows.slice(11, 5)))
