"""Types of columns that functions return: what is cast, and what is refused."""

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tidegate.errors import TidegateError
from tidegate.spark.state.conform import conform

WHEN = datetime(2026, 1, 31, 9, 5, tzinfo=UTC)


def cast(values, found, wanted):
    table = pa.table({"c": pa.array(values, found)})
    return conform(table, pa.schema([("c", wanted)]), "operator 'op': output")["c"]


@pytest.mark.parametrize(
    ("values", "found", "wanted"),
    [
        (["1.5"], pa.string(), pa.float64()),
        ([1], pa.int64(), pa.string()),
        ([1.5], pa.float64(), pa.string()),
        ([True], pa.bool_(), pa.int64()),
        ([1], pa.int64(), pa.bool_()),
        ([0.1], pa.float64(), pa.float32()),
        ([b"a"], pa.binary(), pa.string()),
        (["a"], pa.string(), pa.binary()),
        (["2026-01-31"], pa.string(), pa.timestamp("us", "UTC")),
        ([WHEN], pa.timestamp("us", "UTC"), pa.date32()),
        ([WHEN], pa.timestamp("us", "UTC"), pa.timestamp("us")),
        ([WHEN], pa.timestamp("us", "UTC"), pa.int64()),
        ([1], pa.int64(), pa.timestamp("us", "UTC")),
        ([Decimal("1.25")], pa.decimal128(5, 2), pa.float64()),
        ([["1"]], pa.list_(pa.string()), pa.list_(pa.int64())),
        ([{"a": 1}], pa.struct([("a", pa.int64())]), pa.struct([("a", pa.string())])),
    ],
)
def test_a_cast_that_changes_the_meaning_is_refused(values, found, wanted):
    with pytest.raises(TidegateError, match=r"operator 'op': output: the column 'c' is .* decl"):
        cast(values, found, wanted)


@pytest.mark.parametrize(
    ("values", "found", "wanted"),
    [
        ([2**53 + 1], pa.int64(), pa.float64()),
        ([2**40], pa.int64(), pa.int32()),
        ([1.5], pa.float64(), pa.int64()),
        ([1_000_001], pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC")),
    ],
)
def test_a_value_that_would_change_is_refused(values, found, wanted):
    with pytest.raises(TidegateError, match=r"'c' is .*, and not all of its values fit"):
        cast(values, found, wanted)


@pytest.mark.parametrize(
    ("values", "found", "wanted"),
    [
        ([1, None], pa.int32(), pa.int64()),
        ([1], pa.uint8(), pa.int16()),
        ([2**53], pa.int64(), pa.float64()),
        ([2.0], pa.float64(), pa.int64()),
        ([1.5], pa.float32(), pa.float64()),
        ([None], pa.null(), pa.string()),
        (["a"], pa.large_string(), pa.string()),
        (["a", "a"], pa.dictionary(pa.int32(), pa.string()), pa.string()),
        ([WHEN], pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
        ([WHEN], pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin")),
        ([[1]], pa.list_(pa.int32()), pa.list_(pa.int64())),
        ([{"a": 1}], pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int64())])),
    ],
)
def test_a_cast_that_keeps_every_value_is_made(values, found, wanted):
    result = cast(values, found, wanted)
    assert result.type == wanted
    assert result.to_pylist() == values
