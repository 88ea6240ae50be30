"""A user's own function of several inputs: it gets a table of rows for each of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidegate.errors import AskedWrongly
from tidegate.pipelines.identity import Identity, own_identity
from tidegate.pipelines.keyed import Update
from tidegate.pipelines.packing import Packing


@dataclass(frozen=True, slots=True)
class SeveralInputs:
    """Unpacks the rows, and calls the function with (rows, other rows, ..., state)."""

    function: Callable[..., Update]
    packing: Packing

    def __call__(self, rows: pa.Table, state: pa.Table) -> Update:
        """Call it once for the task."""
        packing = self.packing
        apart = [packing.rows_of(number, rows) for number in range(len(packing.inputs))]
        return self.function(*apart, state)

    def identity(self) -> Identity:
        """That of the user's function."""
        return own_identity(self.function)


def several_inputs(
    function: Any, packing: Packing, what: str, order_by: str | None
) -> SeveralInputs:
    """Check that the function can be given several tables."""
    if order_by is not None:
        raise AskedWrongly(
            f"{what}: order_by goes with one input; sort the tables in the function instead"
        )
    if hasattr(function, "bind") or not callable(function):
        raise AskedWrongly(
            f"{what}: with others=..., give a function of (rows, other rows, ..., state); a "
            "ready-made one reads one stream, so merge the streams before it"
        )
    return SeveralInputs(function, packing)
