"""JSON on columns: what is written is what Python's own reader reads, and the other way round."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.apps.json_columns import json_objects, read_objects
from tidegate.errors import TidegateError

text = st.text(st.characters(exclude_characters='"\\', exclude_categories=["C"]), max_size=8)
row = st.fixed_dictionaries(
    {
        "id": st.integers(-(2**63), 2**63 - 1),
        "user": st.fixed_dictionaries({"name": text, "number": st.integers(0, 9)}),
        "text": text,
    }
)
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "user": pa.struct({"name": pa.string(), "number": pa.int64()}),
        "text": pa.string(),
    }
)


@given(st.lists(row, max_size=6))
def test_objects_are_written_as_others_read_them(rows) -> None:
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    texts = json_objects({name: table[name].combine_chunks() for name in table.column_names})
    assert [json.loads(one) for one in texts.to_pylist()] == rows


@given(st.lists(row, max_size=6), st.integers(0, 6))
def test_objects_are_read_as_others_write_them(rows, cut) -> None:
    texts = [json.dumps(row | {"other": [1, {"a": None}]}) for row in rows]
    parts = pa.chunked_array([texts[:cut], texts[cut:]], pa.string())
    found = read_objects(parts, SCHEMA)
    assert found.schema == SCHEMA
    assert found.to_pylist() == rows


def test_a_missing_field_is_null() -> None:
    schema = pa.schema({"text": pa.string(), "id": pa.int64()})
    found = read_objects(pa.chunked_array([['{"id": 3}', '{"text": "a"}']]), schema)
    assert found.to_pylist() == [{"text": None, "id": 3}, {"text": "a", "id": None}]


@pytest.mark.parametrize("odd", ['a "quote"', "back\\slash", "a\nline"])
def test_a_text_that_needs_an_escape_is_refused(odd: str) -> None:
    with pytest.raises(TidegateError, match="'text' needs an escape"):
        json_objects({"text": pa.array(["fine", odd])})


@pytest.mark.parametrize("odd", ["", '{"id": 1}\n{"id": 2}'])
def test_a_text_must_be_one_object(odd: str) -> None:
    with pytest.raises(TidegateError, match="expected one object in each"):
        read_objects(pa.chunked_array([['{"id": 1}', odd]]), pa.schema({"id": pa.int64()}))
