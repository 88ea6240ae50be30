"""Traces inside a micro-batch: the hidden column in which sampled inputs travel with their rows.

A trace (`control.learning.traces`) is negative on the rows of a source, so that whoever sees such a
row first can tell that its input has just entered. Behind that, traces are positive.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
from numpy.typing import NDArray
from pyspark import TaskContext
from pyspark.sql import DataFrame

from tidegate.control.learning.traces import (
    ARRIVAL_SHIFT,
    NO_IDS,
    NUMBER_MASK,
    STRATUM_ENDS,
    STRATUM_FACTOR,
    STRATUM_SHIFT,
    Ids,
)
from tidegate.pipelines.graph import Source
from tidegate.spark.batch.worker import TRACE

SPARK_TYPE = "binary"
ARROW_TYPE = pa.binary()
"""The traces of a row, eight bytes each. Lists would say it better, but Spark asks for the size of
an Arrow block at every row, and for a list column with many nulls that takes quadratic time."""
_BYTES = np.dtype(">i8")
"""Big-endian, as Spark's `hex` writes a number."""
FIELD = pa.field(TRACE, ARROW_TYPE)
_PLACE = "__place"
_PLACE_BITS = 33
"""Spark numbers the rows of a partition in so many bits; the partition is above them."""
_PART_STEP = 31
"""Inputs of the same microsecond are numbered from another start in each partition."""
_MOST_PAIRS = 1 << 20
_MOST_OF_KEY = 256
"""Traces that the rows of one key carry on. A key that is fed back for ever would collect all."""


def with_traces(rows: DataFrame, source: Source, every: int) -> DataFrame:
    """The rows of a source, with traces on a sample of them.

    Which rows are traced follows from their place in their partition, so a replay traces the same.
    """
    name = str(source.arrival).replace("`", "``")
    if source.schema.field(source.arrival).type.tz is None:
        micros = f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', `{name}`)"
    else:
        micros = f"unix_micros(`{name}`)"
    place = f"({_PLACE} & {(1 << _PLACE_BITS) - 1}L)"
    sampled = f"{micros} > 0"
    if every > 1:
        sampled += f" and {place} % {every} = 0"
        place = f"({place} div {every})"
    part = f"shiftrightunsigned({_PLACE}, {_PLACE_BITS})"
    strata = []
    for stratum, end in enumerate((*STRATUM_ENDS, None)):
        stride = STRATUM_FACTOR**stratum
        number = f"({place} div {stride} + {_PART_STEP} * {part}) & {NUMBER_MASK}"
        trace = (
            f"unhex(hex(-(shiftleft({micros}, {ARRIVAL_SHIFT}) | {stratum << STRATUM_SHIFT}L"
            f" | ({number}))))"
        )
        chosen = trace if stride == 1 else f"if({place} % {stride} = 0, {trace}, null)"
        strata.append(f"else {chosen}" if end is None else f"when {place} < {end} then {chosen}")
    return (
        rows.selectExpr("*", f"monotonically_increasing_id() as {_PLACE}")
        .selectExpr("*", f"if({sampled}, case {' '.join(strata)} end, null) as {TRACE}")
        .drop(_PLACE)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """The traces on some rows: pairs of a row's place and a trace, in the order of the rows."""

    places: NDArray[np.int64]
    traces: Ids

    @classmethod
    def of(cls, rows: pa.Table | pa.RecordBatch) -> Self:
        """The traces in the hidden column of some rows; none where there is no such column."""
        if TRACE not in rows.schema.names:
            return cls(NO_IDS, NO_IDS)
        column = rows.column(TRACE)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        traced = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
        if not len(traced):
            return cls(NO_IDS, NO_IDS)
        values = column.take(pa.array(traced)).cast(ARROW_TYPE)
        lengths = compute.binary_length(values).to_numpy(zero_copy_only=False) // _BYTES.itemsize
        traces = np.frombuffer(values.buffers()[2], dtype=_BYTES, count=int(lengths.sum()))
        return cls(np.repeat(traced, lengths), traces.astype(np.int64))

    @property
    def born(self) -> Ids:
        """The traces of inputs that have just entered."""
        return -self.traces[self.traces < 0]

    @property
    def settled(self) -> "Marks":
        """The same, with no input that has just entered."""
        return Marks(self.places, np.abs(self.traces))

    def column(self, rows: int) -> pa.Array:
        """The hidden column of so many rows."""
        counts = np.bincount(self.places, minlength=rows)
        ends = np.concatenate([[0], np.cumsum(counts)]) * _BYTES.itemsize
        present = np.packbits(counts > 0, bitorder="little")
        buffers = [present, ends.astype(np.int32), self.traces.astype(_BYTES)]
        return pa.Array.from_buffers(ARROW_TYPE, rows, [pa.py_buffer(one) for one in buffers])

    def within(self, chosen: NDArray[np.int64]) -> "Marks":
        """The traces on some of the rows, which are then counted from 0."""
        places = np.searchsorted(chosen, self.places)
        inside = places < len(chosen)
        inside[inside] = chosen[places[inside]] == self.places[inside]
        return Marks(places[inside], self.traces[inside])

    def inherited(self, parents: NDArray[np.int64], given: int) -> "Marks":
        """The traces on derived rows, each of which has one parent among the `given` rows."""
        return Marks(*_gathered(self.places, self.traces, parents, given))

    def passed(self, given: int, made: int, parents: NDArray[np.int64] | None) -> "Marks":
        """The traces on the `made` rows that a function returned for the `given` ones.

        Without `parents`, as many rows are taken to be the same rows. Otherwise parents are spread
        evenly and in order, so that no trace is lost while there is a row to carry it.
        """
        if parents is not None:
            return self.inherited(parents, given)
        if made == given:
            return self
        if not made or not len(self.traces):
            return Marks(NO_IDS, NO_IDS)
        if made > given:
            return self.inherited(np.arange(made) * given // made, given)
        return _unique(self.places * made // given, self.traces)

    def grouped(self, keys: pa.Table, output: pa.Table) -> "Marks":
        """The traces on the output of a keyed operator: those of all rows with the same key.

        `keys` has the keys of the rows, one for each pair. If the output has no such columns, the
        traces are spread over it.
        """
        if not output.num_rows or not len(self.traces):
            return Marks(NO_IDS, NO_IDS)
        codes = _key_codes(keys, output)
        if codes is None:
            traces = np.unique(self.traces)
            return Marks(np.arange(len(traces)) * output.num_rows // len(traces), traces)
        mine, places, theirs = codes
        pairs = _newest(_unique(mine, self.traces))
        known = int(max(mine.max(), theirs.max(initial=0))) + 1
        counts = np.bincount(pairs.places, minlength=known)
        if int(counts[theirs].sum()) > _MOST_PAIRS:
            first = np.sort(np.unique(theirs, return_index=True)[1])
            places, theirs = places[first], theirs[first]
        made = Marks(*_gathered(pairs.places, pairs.traces, theirs, known))
        return Marks(places[made.places], made.traces)


@dataclass(frozen=True, slots=True)
class TraceSample:
    """How the only reader of a source samples inputs itself, by the same rule as `with_traces`.

    Then the rows that Spark hands to it need no hidden column.
    """

    arrival: str
    every: int = 1

    def of(self, rows: pa.Table, order: NDArray[np.int64]) -> Marks:
        """The traces of some rows by their numbers: the partition, and the place in it."""
        place = order & ((1 << _PLACE_BITS) - 1)
        if self.every > 1:
            chosen = np.flatnonzero(place % self.every == 0)
        else:  # the cheapest test leaves out most rows
            chosen = np.flatnonzero((place < STRATUM_ENDS[0]) | (place % STRATUM_FACTOR == 0))
        place = place[chosen] // self.every
        stratum = np.searchsorted(STRATUM_ENDS, place, side="right")
        stride = STRATUM_FACTOR ** np.arange(len(STRATUM_ENDS) + 1)
        sampled = place % stride[stratum] == 0
        chosen, place, stratum = chosen[sampled], place[sampled], stratum[sampled]
        column = rows.column(self.arrival).take(pa.array(chosen))
        kind = pa.timestamp("us", column.type.tz)
        micros = column.cast(kind, safe=False).cast(pa.int64()).fill_null(0).to_numpy()
        number = (
            place // stride[stratum] + _PART_STEP * (order[chosen] >> _PLACE_BITS)
        ) & NUMBER_MASK
        traces = -(micros << ARRIVAL_SHIFT | stratum << STRATUM_SHIFT | number)
        return Marks(chosen[micros > 0], traces[micros > 0])


def numbered(before: int, rows: int) -> NDArray[np.int64]:
    """Numbers of the next rows of this task's partition, as Spark would number them."""
    context = TaskContext.get()
    part = 0 if context is None else context.partitionId()
    return np.arange(before, before + rows) + (part << _PLACE_BITS)


def joined(parts: list[tuple[Marks, int]]) -> Marks:
    """The traces on several tables, each with its number of rows, one below the other."""
    begins = np.cumsum([0, *(rows for _, rows in parts)])
    return Marks(
        np.concatenate([m.places + begin for (m, _), begin in zip(parts, begins, strict=False)]),
        np.concatenate([marks.traces for marks, _ in parts]),
    )


def _gathered(
    places: NDArray[np.int64], traces: Ids, parents: NDArray[np.int64], given: int
) -> tuple[NDArray[np.int64], Ids]:
    """For each parent, in order, all pairs of that place; `places` is in ascending order."""
    counts = np.bincount(places, minlength=given)
    begins = np.cumsum(counts) - counts
    lengths = counts[parents]
    rows = np.repeat(np.arange(len(parents)), lengths)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return rows, traces[np.repeat(begins[parents], lengths) + within]


def _unique(places: NDArray[np.int64], traces: Ids) -> Marks:
    """Each pair once, by place and then by trace."""
    order = np.lexsort((traces, places))
    places, traces = places[order], traces[order]
    first = np.ones(len(places), dtype=np.bool_)
    first[1:] = (places[1:] != places[:-1]) | (traces[1:] != traces[:-1])
    return Marks(places[first], traces[first])


def _newest(pairs: Marks) -> Marks:
    """The newest traces of each place, by arrival; `pairs` is ordered by place and trace."""
    counts = np.bincount(pairs.places)
    if counts.max(initial=0) <= _MOST_OF_KEY:
        return pairs
    after = np.cumsum(counts)[pairs.places] - np.arange(len(pairs.places))
    kept = after <= _MOST_OF_KEY
    return Marks(pairs.places[kept], pairs.traces[kept])


def _key_codes(
    keys: pa.Table, output: pa.Table
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None:
    """Numbers for keys, equal for equal ones: of `keys`, and of those output rows that have such a
    key, after the places of these rows. None if the columns cannot be compared.
    """
    if not set(keys.column_names) <= set(output.column_names):
        return None
    mine = np.zeros(keys.num_rows, dtype=np.int64)
    places, theirs = np.arange(output.num_rows), np.zeros(output.num_rows, dtype=np.int64)
    for name in keys.column_names:
        column = output.column(name)
        try:
            coded = keys.column(name).cast(column.type).combine_chunks()
            coded = coded.dictionary_encode(null_encoding="encode")
            # Only the few traced keys are put into a table, and all others looked up in it.
            found = compute.index_in(column, value_set=coded.dictionary).combine_chunks()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            return None
        known = len(coded.dictionary)
        other = np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
        other = other[places]
        places, theirs, other = places[other >= 0], theirs[other >= 0], other[other >= 0]
        mine = mine * known + coded.indices.to_numpy(zero_copy_only=False)
        theirs = theirs * known + other
        if len(keys.column_names) > 1:  # keep the numbers small
            both = np.unique(np.concatenate([mine, theirs]), return_inverse=True)[1]
            mine, theirs = both[: len(mine)], both[len(mine) :]
    return mine, places, theirs
