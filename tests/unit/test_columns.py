"""Columns of whole numbers, and their text in JSON."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.columns import IntColumn, dumps, list_text, lists_text

numbers = st.integers(0, 10**12) | st.integers(0, 120)


@given(st.lists(numbers, max_size=40))
def test_the_text_of_a_column_is_that_of_a_list(values) -> None:
    assert list_text(np.array(values, np.int64)) == json.dumps(values, separators=(",", ":"))


@given(st.lists(st.integers(-(10**6), 10**6), max_size=9))
def test_numbers_below_zero_are_written_too(values) -> None:
    assert json.loads(list_text(np.array(values, np.int64))) == values


@given(st.lists(st.lists(numbers, max_size=5), max_size=12))
def test_the_text_of_several_lists_is_that_of_a_list_of_lists(lists) -> None:
    lengths = np.array([len(one) for one in lists], np.int32)
    flat = np.array([value for one in lists for value in one], np.int64)
    assert lists_text(flat, lengths) == json.dumps(lists, separators=(",", ":"))


@given(st.lists(numbers, max_size=12))
def test_a_column_is_like_a_tuple(values) -> None:
    column, plain = IntColumn(values), tuple(values)
    assert column == plain and plain == column and column == IntColumn(plain)
    assert column != (*plain, 1) and column != IntColumn([*plain, 1])
    assert hash(column) == hash(plain) and tuple(column) == plain and len(column) == len(plain)
    assert bool(column) is bool(plain) and column[1:] == plain[1:]
    assert [column[place] for place in range(len(plain))] == values
    assert pickle.loads(pickle.dumps(column)) == column


def test_a_column_never_changes() -> None:
    given = np.array([1, 2])
    column = IntColumn(given)
    given[0] = 9
    assert column == (1, 2)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(column)[0] = 9


def test_a_document_with_columns_is_written_as_one_with_lists() -> None:
    document = {"a": [IntColumn([3, 4]), "column", {"b": IntColumn([])}], "c": 1.5, "d": '"[1]'}
    plain = {"a": [[3, 4], "column", {"b": []}], "c": 1.5, "d": '"[1]'}
    assert dumps(document) == json.dumps(plain, separators=(",", ":"))


def test_what_json_cannot_hold_is_refused_or_translated() -> None:
    with pytest.raises(TypeError, match="set"):
        dumps({"a": {1}})
    assert dumps({"a": {1}}, list) == '{"a":[1]}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        dumps({"a": float("nan")}, allow_nan=False)
