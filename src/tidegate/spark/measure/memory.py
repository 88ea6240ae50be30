"""What the driver remembers of a run: results and records, bounded in number and in bytes.

A batch of 200 tasks reports megabytes of arrival stamps, and a record has the rows of every shard.
The meter and the files of records have read them soon after. A run that goes on for months must not
keep them all.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar, overload

from tidegate.control.record import Record
from tidegate.spark.batch.result import BatchResult

T = TypeVar("T")

RESULTS = 512
RESULT_BYTES = 32 * 2**20
"""Of one segment."""
RECORDS = 7200
RECORD_BYTES = 64 * 2**20
_WHOLE = 8
"""So many of the newest are kept whole, whatever their size: the meter may not have read them."""
_SAMPLE = 16
"""The size of a result is estimated from so many of its reports."""
_OBJECT_BYTES = 1000
"""What a report or a measurement takes without its arrays and tuples."""
_NUMBER_BYTES = 40
"""What a number in a tuple takes, with its place."""


class BoundedMemory(Sequence[T], Generic[T]):
    """The newest items, oldest first. Beyond the bytes, old ones are stripped and then dropped."""

    def __init__(
        self,
        *,
        most: int,
        most_bytes: int,
        size: Callable[[T], int],
        strip: Callable[[T], T],
    ) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._size = size
        self._strip = strip
        self._lock = threading.Lock()
        self._stripped: deque[tuple[T, int]] = deque()
        self._whole: deque[tuple[T, int]] = deque()
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """The estimated size of all items."""
        return self._bytes

    def append(self, item: T) -> None:
        """Add the newest item; the oldest ones make room for it."""
        size = self._size(item)
        with self._lock:
            self._whole.append((item, size))
            self._bytes += size
            while self._bytes > self._most_bytes and len(self._whole) > _WHOLE:
                self._strip_one()
            while len(self) > self._most or (self._bytes > self._most_bytes and self._stripped):
                oldest = self._stripped or self._whole
                self._bytes -= oldest.popleft()[1]

    def _strip_one(self) -> None:
        item, size = self._whole.popleft()
        bare = self._strip(item)
        rest = self._size(bare)
        self._stripped.append((bare, rest))
        self._bytes += rest - size

    def __len__(self) -> int:
        return len(self._stripped) + len(self._whole)

    def __iter__(self) -> Iterator[T]:
        with self._lock:
            return iter([item for items in (self._stripped, self._whole) for item, _ in items])

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        if place == -1:
            with self._lock:
                return (self._whole or self._stripped)[-1][0]
        return list(self)[place]


def remembered_results() -> BoundedMemory[BatchResult]:
    """The memory of one segment's results. Old ones lose the reports of their tasks."""
    return BoundedMemory(
        most=RESULTS,
        most_bytes=RESULT_BYTES,
        size=result_bytes,
        strip=lambda result: replace(result, reports=(), traces={}),
    )


def remembered_records() -> BoundedMemory[Record]:
    """The memory of one loop's records. Old ones lose what they have per shard and key group."""
    return BoundedMemory(
        most=RECORDS, most_bytes=RECORD_BYTES, size=record_bytes, strip=without_shards
    )


def result_bytes(result: BatchResult) -> int:
    """About how much memory a result takes, from some of its reports."""
    routes = sum(len(entry.route) for entry in result.plan.operators.values())
    traces = sum(int(array.nbytes) for array in result.traces.values())
    fixed = _OBJECT_BYTES + _NUMBER_BYTES * routes + traces
    step = -(-len(result.reports) // _SAMPLE) or 1
    sample = result.reports[::step]
    arrays = sum(_report_bytes(report) for report in sample)
    return fixed + (arrays * len(result.reports) // len(sample) if sample else 0)


def _report_bytes(report: Any) -> int:
    found = [report.stamps, report.shed and report.shed.stamps]
    arrays = [a for stamps in found if stamps is not None for a in (stamps.slots, stamps.counts)]
    for pair in (report.shard_rows, report.shard_bytes, report.shed and report.shed.groups):
        arrays += pair or ()
    arrays += [traces for traces in (report.born, report.left) if traces is not None]
    pieces = 0 if report.change is None else len(report.change.kept)
    kept = 2 * _NUMBER_BYTES * pieces
    return _OBJECT_BYTES + kept + sum(int(array.nbytes) for array in arrays)


def record_bytes(record: Record) -> int:
    """About how much memory a record takes."""
    tick, decision = record.measurement, record.decision
    objects = 4 + len(tick.operators) + len(tick.segments) + len(tick.sources)
    objects += sum(len(segment.batches) for segment in tick.segments)
    numbers = sum(len(one.route) + len(one.shard_rows) + len(one.nodes) for one in tick.operators)
    numbers += sum(len(one.groups_offered) + len(one.groups_kept) for one in tick.sources)
    numbers += 3 * sum(len(moves) for moves in decision.moves.values()) + 3 * len(record.beliefs)
    return _OBJECT_BYTES * objects + _NUMBER_BYTES * numbers


def without_shards(record: Record) -> Record:
    """A record without what it has per shard, key group and node; the file of records has it."""
    tick = record.measurement
    operators = tuple(replace(one, route=(), shard_rows=(), nodes=()) for one in tick.operators)
    sources = tuple(replace(one, groups_offered=(), groups_kept=()) for one in tick.sources)
    return replace(record, measurement=replace(tick, operators=operators, sources=sources))
