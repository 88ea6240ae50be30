"""The rows of an operator's several inputs as one DataFrame (`pipelines.packing`)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.control.learning.sojourn import Stamps
from tidegate.pipelines.graph import Merge, Node, Packed, Segment, Source
from tidegate.pipelines.packing import INPUT
from tidegate.pipelines.schema import struct_of
from tidegate.pipelines.walks import first_reader
from tidegate.spark.batch.worker import ORIGIN
from tidegate.spark.measure.stamps import ArrivalSample, arrival_us


def packed_rows(node: Packed, number: int, rows: DataFrame, hidden: tuple[str, ...]) -> DataFrame:
    """The rows of one input, with the columns of the common table and hidden ones."""
    stands = node.packing.of(number)
    columns = []
    for field in struct_of(node.packing.schema).fields:
        if field.name == INPUT:
            value = F.lit(number)
        elif field.name in stands:
            value = F.col(_quoted(stands[field.name]))
        else:
            value = F.lit(None)
        columns.append(value.cast(field.dataType).alias(field.name))
    return rows.select(*columns, *(F.col(name) for name in hidden))


def packed_at_once(
    node: Packed, batch: DataFrame, tag: str, origins: Mapping[str, int] | None
) -> DataFrame:
    """The rows of all inputs, where these are all that the batch holds: a struct for each, and a
    tag that says which of them a row is. With `origins` rows get their origin's number.
    """

    def by_input(values: list[Column | None]) -> Column:
        chosen = F.lit(None)
        for name, value in zip(node.inputs, values, strict=True):
            if value is not None:
                chosen = F.when(F.col(tag) == name, value).otherwise(chosen)
        return chosen

    columns = []
    for field in struct_of(node.packing.schema).fields:
        values: list[Column | None] = []
        for number, name in enumerate(node.inputs):
            stands = node.packing.of(number)
            if field.name == INPUT:
                values.append(F.lit(number))
            elif field.name in stands:
                values.append(F.col(f"{_quoted(name)}.{_quoted(stands[field.name])}"))
            else:
                values.append(None)
        columns.append(by_input(values).cast(field.dataType).alias(field.name))
    if origins is not None:
        known = by_input([F.lit(origins[name]) for name in node.inputs])
        columns.append(known.cast("int").alias(ORIGIN))
    return batch.select(*columns)


@dataclass(frozen=True, slots=True)
class PackedArrivals(ArrivalSample):
    """Notes arrivals of those inputs that are sources, each by its own arrival column.

    `column` is not used: an arrival stands in another column for each input.
    """

    places: tuple[tuple[int, str], ...] = ()
    """The number of an input, and where its arrival column stands."""

    def of(self, rows: pa.Table | pa.RecordBatch, place: int = 0) -> Stamps:
        """The stamps of a sample of the rows."""
        number = np.asarray(rows.column(INPUT))
        found = []
        for mine, name in self.places:
            chosen = np.flatnonzero(number == mine)[-place % self.every :: self.every]
            taken = rows.column(name).take(pa.array(chosen))
            whole = taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken
            found.append(arrival_us(whole))
        return Stamps.of(np.concatenate(found))


def packed_arrivals(
    segment: Segment, node: Packed, reader: Node, every: int
) -> PackedArrivals | None:
    """How an operator notes the arrivals of those of its inputs that it is the first to read."""
    known = {one.name: one for one in (*segment.reads, *segment.nodes)}
    places = []
    for number, name in enumerate(node.inputs):
        arrivals = set()
        waiting = [name]
        while waiting:
            above = known[waiting.pop()]
            if isinstance(above, Source):
                if above.arrival is not None and first_reader(segment, above.name) is reader:
                    arrivals.add(above.arrival)
            elif isinstance(above, Merge):
                waiting += above.inputs
        places += [(number, node.packing.place(number, column)) for column in sorted(arrivals)[:1]]
    return PackedArrivals("", every, tuple(places)) if places else None


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
