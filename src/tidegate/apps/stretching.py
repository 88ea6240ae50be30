"""Operators that take a stated time per tuple, by waiting after their real work.

Two cores cannot show what 22 can. An application computes its real answers and then waits until the
time of the paper is over. Waiting needs no core, so 22 tasks get as much done as 22 cores.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.pipelines.derived import Derived
from tidegate.pipelines.graph import Keyed
from tidegate.pipelines.keyed import BoundKeyed, KeyedBatch, KeyedFunction, Update
from tidegate.pipelines.stream import Stream

Weights = Callable[[pa.Table], npt.NDArray[np.float64]]
"""For each row, its time over the mean: frames with many features take longer."""


def wait_until(begun_s: float, seconds: float) -> None:
    """Wait until so many seconds have passed since a moment of `time.perf_counter`."""
    left_s = begun_s + seconds - time.perf_counter()
    if left_s > 0.0:
        time.sleep(left_s)


def stretched_map(
    function: Callable[[pa.Table], pa.Table | Derived],
    row_s: float | None,
    weights: Weights | None = None,
    *,
    of_made: bool = False,
) -> Callable[[pa.Table], pa.Table | Derived]:
    """The function, which takes `row_s` for each row that it is given; None: as fast as it is.

    With `of_made`, `row_s` and `weights` are those of the rows that it makes: how many features a
    frame has is known afterwards.
    """
    if row_s is None:
        return function

    def stretched(rows: pa.Table) -> pa.Table | Derived:
        begun_s = time.perf_counter()
        made = function(rows)
        weighed = rows
        if of_made:
            weighed = made.rows if isinstance(made, Derived) else made
        wait_until(begun_s, row_s * _weight(weighed, weights))
        return made

    return stretched


@dataclass(frozen=True, slots=True)
class Stretched:
    """A keyed function that takes `row_s` for each row; None: as fast as it is."""

    inner: KeyedFunction
    row_s: float | None
    weights: Weights | None = None

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """The inner function's schemas, with the wait behind its update."""
        bound = self.inner.bind(rows, key)
        row_s, weights, update = self.row_s, self.weights, bound.update
        if row_s is None:
            return bound

        def stretched(batch: KeyedBatch) -> Update:
            begun_s = time.perf_counter()
            made = update(batch)
            wait_until(begun_s, row_s * _weight(batch.rows, weights))
            return made

        return replace(bound, update=stretched)


def stretched_operator(stream: Stream, row_s: float | None) -> Stream:
    """The stream of a keyed operator that is there already, which then takes `row_s` for each row.

    A join makes its own function, so there is nothing to hand a stretched one to.
    """
    node = stream.graph.nodes[stream.node]
    assert isinstance(node, Keyed)
    ready = _Ready(node.bound)
    bound = Stretched(ready, row_s).bind(node.rows, node.key)
    stream.graph.nodes[node.name] = replace(node, bound=bound)
    return stream


@dataclass(frozen=True, slots=True)
class _Ready:
    """A function that is bound already."""

    bound: BoundKeyed

    def bind(self, rows: pa.Schema, key: tuple[str, ...]) -> BoundKeyed:
        """The same, whatever it is asked with."""
        return self.bound


def _weight(rows: pa.Table, weights: Weights | None) -> float:
    return float(rows.num_rows if weights is None else weights(rows).sum())
