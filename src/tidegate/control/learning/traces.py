"""When sampled inputs are done: when the last row that was derived from them is.

A *trace* is the number of one sampled input. It travels with all rows derived from that input, so
the driver knows which traces each hand-over between two segments holds. An input is done when no
hand-over holds its trace any more; its sojourn ends with the last batch that held it.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tidegate.control.learning.sojourn import SLOT_US, BatchStamps, Stamps

Ids = npt.NDArray[np.int64]

ARRIVAL_SHIFT = 11
"""A trace is the microsecond of the arrival, followed by so many bits."""
STRATUM_SHIFT = 9
"""The upper two of these bits are the stratum; the others number the inputs of a microsecond."""
NUMBER_MASK = (1 << STRATUM_SHIFT) - 1
STRATUM_MASK = 3
STRATUM_FACTOR = 16
"""Each stratum is sampled so many times more rarely than the one before it."""
STRATUM_ENDS = (512, 512 * 16, 512 * 16**2)
"""Where strata end, by the place of a row in its partition. The first rows are all traced, later
ones ever more rarely: a small batch has many samples, and a huge one not too many."""

NO_IDS: Ids = np.empty(0, dtype=np.int64)
_PATIENCE_S = 15.0
"""How long a batch waits for the report of the batch whose rows it took."""
_FORGET_S = 600.0
"""Inputs that are not done so long after their first batch are given up: some loops never end."""
_MOST = 1 << 20
"""How many inputs may be in flight; beyond that, the oldest ones are given up."""


def arrival_us(traces: Ids) -> Ids:
    """When traced inputs arrived."""
    return traces >> ARRIVAL_SHIFT


def weights(traces: Ids) -> Ids:
    """For how many inputs each trace stands, where every input may be sampled (N_m = 1)."""
    stratum = (traces >> STRATUM_SHIFT) & STRATUM_MASK
    return np.asarray(STRATUM_FACTOR**stratum, dtype=np.int64)


def weighted_stamps(traces: Ids) -> Stamps:
    """The arrivals of traced inputs, each counted as often as it stands for an input."""
    slots, beyond = np.divmod(arrival_us(traces), SLOT_US)
    weight = weights(traces)
    filled, places = np.unique(slots, return_inverse=True)
    counts = np.zeros(len(filled), dtype=np.int64)
    np.add.at(counts, places, weight)
    return Stamps(filled, counts, int((beyond * weight).sum()))


@dataclass(frozen=True, slots=True, eq=False)
class TracedBatch:
    """What a finished micro-batch did to traces."""

    segment: str
    batch_id: int
    end_us: int
    born: Ids = field(default_factory=lambda: NO_IDS)
    """Traces of inputs that entered the pipeline with this batch."""
    taken: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """For each channel that it read: the writer's batches from the first id to before the second
    one."""
    written: Mapping[str, Ids] = field(default_factory=dict)
    """For each channel that it wrote rows into: the traces of these rows, each once."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """For each channel that it wrote rows into: how many."""


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """What one batch told about sojourns."""

    segment: str
    done: tuple[BatchStamps, ...]
    """The inputs that are done with it, by when the last batch that held them ended."""
    waited: BatchStamps | None
    """The rows that it took from channels, by when they were handed over."""


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """A hand-over that has not been read yet."""

    traces: Ids
    rows: int
    end_us: int
    """When the batch that wrote it ended."""


class TracedInputs:
    """Follows traces from batch to batch. Batches may be told in any order across segments."""

    def __init__(
        self,
        writers: Mapping[str, str],
        *,
        patience_s: float = _PATIENCE_S,
        forget_s: float = _FORGET_S,
        most: int = _MOST,
    ) -> None:
        self._writers = writers
        """The segment that writes each channel."""
        self._patience_us = round(patience_s * 1e6)
        self._forget_us = round(forget_s * 1e6)
        self._most = most
        self._waiting: dict[str, deque[TracedBatch]] = {}
        self._first: dict[str, int] = {}
        self._newest: dict[str, int] = {}
        """The first and the newest batch of each segment that was followed."""
        self._held: dict[str, dict[int, _Held]] = {channel: {} for channel in writers}
        self._traces = NO_IDS
        """The inputs in flight, in ascending order; the arrays below are in the same order."""
        self._holders = NO_IDS
        """How many hand-overs hold each."""
        self._last_us = NO_IDS
        """When the last batch that held it ended."""
        self._born_us = NO_IDS
        self.forgotten = 0
        """Inputs that were given up before they were done."""

    @property
    def in_flight(self) -> int:
        """Traced inputs that are not done."""
        return len(self._traces)

    def add(self, batches: Iterable[TracedBatch], now_us: int) -> list[Settled]:
        """Follow more finished batches, those of one segment in their order.

        A batch is followed only after the batches whose rows it took. If one of these is not told
        within the patience, what it handed over stays unknown.
        """
        for batch in batches:
            self._waiting.setdefault(batch.segment, deque()).append(batch)
        settled: list[Settled] = []
        while ready := [
            queue
            for queue in self._waiting.values()
            if queue and self._may_follow(queue[0], now_us)
        ]:
            for queue in ready:
                settled.append(self._follow(queue.popleft()))
        self._forget(now_us)
        return settled

    def _may_follow(self, batch: TracedBatch, now_us: int) -> bool:
        """Whether all batches whose rows it took are known, or will not become known."""
        if now_us - batch.end_us > self._patience_us:
            return True
        for channel, (start, end) in batch.taken.items():
            writer = self._writers[channel]
            if end <= start or writer == batch.segment:
                continue  # a segment's own batches are in order
            if self._newest.get(writer, -1) < end - 1 and self._first.get(writer, 0) < end:
                return False
        return True

    def _follow(self, batch: TracedBatch) -> Settled:
        self._first.setdefault(batch.segment, batch.batch_id)
        self._newest[batch.segment] = batch.batch_id
        born = np.unique(batch.born)
        self._let_in(born, batch.end_us)
        for channel, traces in batch.written.items():
            places = self._places(np.unique(traces))
            self._holders[places] += 1
            self._held[channel][batch.batch_id] = _Held(
                self._traces[places], batch.rows.get(channel, 0), batch.end_us
            )
        taken = self._taken(batch)
        for held in taken:
            self._holders[self._places(held.traces)] -= 1
        places = self._places(np.unique(np.concatenate([born, *(one.traces for one in taken)])))
        self._last_us[places] = np.maximum(self._last_us[places], batch.end_us)
        return Settled(
            batch.segment,
            self._let_out(places[self._holders[places] == 0]),
            _waited(taken, batch.end_us),
        )

    def _taken(self, batch: TracedBatch) -> list[_Held]:
        """The hand-overs that a batch took; one that was passed over can not be taken any more."""
        found = []
        for channel, (start, end) in batch.taken.items():
            held = self._held[channel]
            for batch_id in [number for number in held if number < end]:
                one = held.pop(batch_id)
                if batch_id >= start:
                    found.append(one)
                else:
                    self._give_up(self._places(one.traces))
        return found

    def _let_in(self, born: Ids, end_us: int) -> None:
        """New inputs, with no hand-over that holds them yet."""
        places = np.searchsorted(self._traces, born)
        known = np.zeros(len(born), dtype=np.bool_)
        inside = places < len(self._traces)
        known[inside] = self._traces[places[inside]] == born[inside]
        born, places = born[~known], places[~known]
        if not len(born):
            return
        self._traces = np.insert(self._traces, places, born)
        self._holders = np.insert(self._holders, places, 0)
        self._last_us = np.insert(self._last_us, places, end_us)
        self._born_us = np.insert(self._born_us, places, end_us)

    def _let_out(self, places: Ids) -> tuple[BatchStamps, ...]:
        """The arrivals of inputs that are done, by the end of the last batch that held them."""
        if not len(places):
            return ()
        traces, ends = self._traces[places], self._last_us[places]
        self._drop(places)
        return tuple(
            BatchStamps(weighted_stamps(traces[ends == end_us]), int(end_us))
            for end_us in np.unique(ends)
        )

    def _forget(self, now_us: int) -> None:
        self._give_up(np.flatnonzero(self._born_us < now_us - self._forget_us))
        beyond = len(self._traces) - self._most
        if beyond > 0:
            self._give_up(np.argsort(self._born_us, kind="stable")[:beyond])
        for held in self._held.values():
            old = [number for number, one in held.items() if one.end_us < now_us - self._forget_us]
            for number in old:
                del held[number]

    def _give_up(self, places: Ids) -> None:
        self.forgotten += len(places)
        self._drop(places)

    def _drop(self, places: Ids) -> None:
        if len(places):
            self._traces = np.delete(self._traces, places)
            self._holders = np.delete(self._holders, places)
            self._last_us = np.delete(self._last_us, places)
            self._born_us = np.delete(self._born_us, places)

    def _places(self, traces: Ids) -> Ids:
        """Where known traces are; others (of an earlier run, or given up) are left out."""
        if not len(self._traces):
            return NO_IDS
        places = np.searchsorted(self._traces, traces).clip(max=len(self._traces) - 1)
        return np.asarray(places[self._traces[places] == traces])


def _waited(taken: list[_Held], end_us: int) -> BatchStamps | None:
    """When the rows of some hand-overs were handed over, seen from the end of their batch.

    A reader can be faster than Spark's commit of the batch that wrote; its rows waited no time.
    """
    full = [one for one in taken if one.rows]
    if not full:
        return None
    handed = np.array([min(one.end_us, end_us) for one in full], dtype=np.int64)
    rows = np.array([one.rows for one in full], dtype=np.int64)
    slots, beyond = np.divmod(handed, SLOT_US)
    filled, places = np.unique(slots, return_inverse=True)
    counts = np.zeros(len(filled), dtype=np.int64)
    np.add.at(counts, places, rows)
    return BatchStamps(Stamps(filled, counts, int((beyond * rows).sum())), end_us)
