"""What an operator does with rows that its function cannot process, as the user says it."""

from collections.abc import Callable
from typing import Any, get_args

import pyarrow as pa

from tidegate.errors import AskedWrongly, nearest
from tidegate.pipelines.graph import OnError

ERROR = "_error"
"""The column in which a row that was put aside says what the function raised."""
Given = OnError | Callable[[Any, int], object]
"""A sink takes the rows."""


def on_error_of(given: Given, what: str) -> OnError:
    """What is to happen, checked; rows that a sink is to take are skipped first."""
    if callable(given):
        return "skip"
    if given not in get_args(OnError):
        raise AskedWrongly(
            f"{what}: unknown on_error='{given}'{nearest(str(given), get_args(OnError))}; give "
            "'fail', 'skip', or a sink for these rows"
        )
    return given


def failed_rows(rows: pa.Schema, what: str) -> pa.Schema:
    """The columns of rows that are put aside: those that entered, and the error."""
    if ERROR in rows.names:
        raise AskedWrongly(
            f"{what}: its rows have a column '{ERROR}' already, in which the error would stand; "
            "rename it in a map before this operator"
        )
    return rows.append(pa.field(ERROR, pa.string()))
