"""Runs a topology without Spark: its real operators, on the real state, batch by batch."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.helpers.keyed_operator import Operator
from tidegate.apps.application import Settings
from tidegate.apps.storm_benchmark.topology import Answers, Topology
from tidegate.pipelines.derived import Derived
from tidegate.pipelines.keyed import KeyedFunction

TIMES = pa.timestamp("us", "UTC")


@dataclass
class Recorded:
    """Stands in for a stream: notes the operators that a topology puts behind it."""

    root: Path
    names: list[str] = field(default_factory=list)
    maps: list[Callable[[pa.Table], Any]] = field(default_factory=list)
    keyed_operator: Operator | None = None

    def map(self, function: Callable[[pa.Table], Any], schema: str, **rest: Any) -> "Recorded":
        declared = [one.split()[0] for one in schema.split(",")]

        def checked(rows: pa.Table) -> pa.Table:
            made = function(rows)
            if isinstance(made, Derived):
                made.positions(rows.num_rows)
                made = made.rows
            assert made.column_names == declared
            return made

        assert self.keyed_operator is None
        self.names.append(rest["name"])
        self.maps.append(checked)
        return self

    def keyed(self, name: str, function: KeyedFunction, key: str, **rest: Any) -> "Recorded":
        self.names.append(name)
        self.keyed_operator = Operator(self.root / name, function, key)
        return self

    def cut(self, name: str) -> "Recorded":
        return self

    def run(self, rows: pa.Table, tries: int = 1) -> pa.Table:
        """What leaves the last operator for a batch of the source's rows."""
        for function in self.maps:
            rows = function(rows)
        return rows if self.keyed_operator is None else self.keyed_operator.run(rows, tries)


def numbered(first: int, end: int) -> pa.Table:
    """Rows of a source; when they came does not matter if the topology has a rate."""
    numbers = np.arange(first, end, dtype=np.int64)
    return pa.table({"seq": numbers, "timestamp": pa.array(numbers).cast(TIMES)})


def ran(
    topology: Topology, settings: Settings, root: Path, cuts: Sequence[int], tries: int = 1
) -> Answers:
    """The answers after batches that end at these rows, each tried so often."""
    stream = Recorded(root)
    topology.behind(stream, settings, settings.rate)  # type: ignore[arg-type]
    ends = itertools.pairwise(cuts)
    emitted = pa.concat_tables([stream.run(numbered(*one), tries) for one in ends])
    told = emitted if topology.emits else None
    if stream.keyed_operator is None:
        return Answers(None, told)
    return Answers(stream.keyed_operator.state(), told, stream.keyed_operator.progress)
