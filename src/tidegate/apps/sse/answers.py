"""The form in which all analytics answer, so that one sink takes the answers of all eleven."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, KeyedFunction, Update

ANSWER = pa.schema(
    [
        ("analytic", pa.string()),
        ("stock", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("trade", pa.int64()),
        ("value", pa.float64()),
    ]
)
"""A value of a stock after a trade, or, for windows, in the time until `at`. The index has no
stock."""

Values = Callable[[pa.Table], npt.NDArray[np.float64]]


def answers(
    analytic: str,
    value: npt.NDArray[np.float64],
    *,
    stock: pa.Array | pa.ChunkedArray | None = None,
    at: pa.Array | pa.ChunkedArray | None = None,
    trade: pa.Array | pa.ChunkedArray | None = None,
) -> pa.Table:
    """Answers of one analytic; what it does not know is null."""
    count = len(value)
    name = pa.repeat(pa.scalar(analytic, pa.string()), count)
    known = zip(ANSWER.types[1:4], (stock, at, trade), strict=True)
    rest = [pa.nulls(count, kind) if one is None else one for kind, one in known]
    return pa.Table.from_arrays([name, *rest, pa.array(value)], schema=ANSWER)


@dataclass(frozen=True, slots=True)
class Answering:
    """A ready-made keyed function whose results are told as answers."""

    analytic: str
    inner: KeyedFunction
    value: Values
    at: str | None = None
    """The result column with the end of the window."""
    trade: str | None = None
    """The result column with the last trade."""

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """The inner function's state, with another form of its output."""
        bound = self.inner.bind(rows, key)
        update = bound.update

        def answered(batch: KeyedBatch) -> Update:
            made = update(batch)
            if made.output is None or not made.output.num_rows:
                return replace(made, output=None)
            return replace(made, output=self.told(made.output))

        return replace(bound, update=answered, output=ANSWER)

    def told(self, results: pa.Table) -> pa.Table:
        """The inner function's results as answers."""
        return answers(
            self.analytic,
            self.value(results),
            stock=results["stock"],
            at=None if self.at is None else results[self.at],
            trade=None if self.trade is None else results[self.trade],
        )


def column(name: str) -> Values:
    """A result column as the value."""

    def values(results: pa.Table) -> npt.NDArray[np.float64]:
        found: npt.NDArray[np.float64] = results[name].to_numpy().astype(np.float64)
        return found

    return values
