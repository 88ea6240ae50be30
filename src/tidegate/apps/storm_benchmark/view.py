"""The operator `view`: reads the parts of log lines that an application asks for.

In Intel's benchmark the same bolt is in front of page view, unique visitor and data clean, each
time with other parts.
"""

from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.apps.storm_benchmark.access_log import TAB


class LogPart(NamedTuple):
    """One of the parts between the tabs."""

    place: int
    arrow: pa.DataType
    ddl: str


PARTS = {
    "url": LogPart(0, pa.string(), "string"),
    "status": LogPart(1, pa.int32(), "int"),
    "zip": LogPart(2, pa.int32(), "int"),
    "user": LogPart(3, pa.int64(), "long"),
}
PASSED = {"seq": "long", "at": "timestamp"}
"""Columns beside the line, which are passed on when they are asked for."""


def view(*columns: str) -> Callable[[pa.Table], pa.Table]:
    """A map from lines to these columns."""

    def viewed(rows: pa.Table) -> pa.Table:
        parts = pc.split_pattern(rows["line"], TAB)
        return pa.table(
            {
                name: pc.list_element(parts, PARTS[name].place).cast(PARTS[name].arrow)
                if name in PARTS
                else rows[name]
                for name in columns
            }
        )

    return viewed


def view_schema(*columns: str) -> str:
    """The columns with their types, as an operator declares them."""
    return ", ".join(
        f"{name} {PARTS[name].ddl if name in PARTS else PASSED[name]}" for name in columns
    )
