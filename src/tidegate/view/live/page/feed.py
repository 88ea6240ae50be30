"""What a page knows of one pipeline: bounded columns, its last decisions, its sums.

Records come in from the thread of a control loop, which must not wait; sessions of browsers read
in the thread of the page. What is costly, such as the flow network, is computed only when a
browser asks.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidegate.control.control_failure import ControlFailure
from tidegate.control.flow.graph import FlowGraphs
from tidegate.control.flow_graph import FlowGraph
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.view.changes import again, changes_of, expected_of, outcome_of, words_of
from tidegate.view.live.metrics import Watched
from tidegate.view.live.page.ticks import OperatorTick, Tick, operator_tick, tick_of
from tidegate.view.live.totals import RunTotals

TICKS = 7200
"""So many ticks are kept: two hours of seconds."""
DECISIONS = 60
NOTES = 12
_UNDRAWN = 60
"""Measurements that the flow network has not learned from yet; older ones are forgotten."""


@dataclass(frozen=True, slots=True)
class ToldDecision:
    """A decision that asked for a change, in words."""

    at_s: float
    what: str
    outcome: str
    reason: str
    expected: str
    acted: bool
    times: int = 1
    """How many ticks in a row asked for the same, and were held back."""


@dataclass(frozen=True, slots=True)
class OracleUntil:
    """The least core-seconds that would have held the target until a moment, the future known."""

    at_s: float
    core_seconds: float
    used: float
    """What the run had used by then."""
    within: float = 1.0
    """The share of the time in which the target is held; below 1 where no cores hold it."""
    estimated: bool = False
    """Whether it is an estimate, as for several segments."""


@dataclass(frozen=True, slots=True)
class SeenTick:
    """A tick with its number in the feed."""

    number: int
    tick: Tick
    operators: Mapping[str, OperatorTick]


class Feed:
    """The records of one pipeline, as a page shows them. Any thread may add and read."""

    def __init__(self, name: str, *, clock: Callable[[], float] = time.time) -> None:
        self.name = name
        self.totals = RunTotals()
        self.record: Record | None = None
        """The newest record."""
        self.failure: ControlFailure | None = None
        """The failure of control that no record has ended yet."""
        self.oracle: OracleUntil | None = None
        """Where somebody computed it: a driver does not, because it takes long."""
        self.over = False
        """Whether it is known that no further record comes."""
        self.assembly: Mapping[str, Any] = {}
        """The options of the run; empty while they are not known."""
        self._clock = clock
        self._lock = threading.RLock()
        self._ticks: deque[SeenTick] = deque(maxlen=TICKS)
        self._count = 0
        self._decisions: deque[ToldDecision] = deque(maxlen=DECISIONS)
        self._wish: Record | None = None
        self._notes: dict[str, float] = {}
        self._undrawn: deque[Measurement] = deque(maxlen=_UNDRAWN)
        self._graphs = FlowGraphs()
        self._graph: FlowGraph | None = None

    def add(self, record: Record) -> None:
        """Take the record of a tick."""
        with self._lock:
            self.totals.add(record)
            operators = {one.name: operator_tick(one) for one in record.measurement.operators}
            seen = SeenTick(self._count, tick_of(record, self.totals), operators)
            self._ticks.append(seen)
            self._count += 1
            self.assembly = record.assembly or self.assembly
            self._tell(record)
            if record.measurement.stale is None:
                self._undrawn.append(record.measurement)
            self.failure = None
            self.record = record

    def failed(self, failure: ControlFailure) -> None:
        """Take note of a tick that failed."""
        with self._lock:
            self.totals.failed(failure)
            self.failure = failure

    @property
    def count(self) -> int:
        """How many records have come."""
        return self._count

    def since(self, number: int) -> list[SeenTick]:
        """The ticks from this number on, as far as they are kept."""
        with self._lock:
            fresh = self._count - number
            if fresh <= 0:
                return []
            return list(self._ticks)[-fresh:]

    def decisions(self) -> list[ToldDecision]:
        """The last decisions that asked for a change, newest first."""
        with self._lock:
            return list(reversed(self._decisions))

    def notes(self) -> list[tuple[float, str]]:
        """The last remarks, newest first, with the time at which each was last said."""
        with self._lock:
            return [(at_s, note) for note, at_s in reversed(self._notes.items())]

    def graph(self) -> FlowGraph | None:
        """The flow network at the newest tick that it could be drawn for."""
        with self._lock:
            while self._undrawn:
                measurement = self._undrawn.popleft()
                if self._undrawn:
                    self._graphs.skip(measurement)
                else:
                    self._graph = self._graphs.draw(measurement) or self._graph
            return self._graph

    def silent_s(self) -> float:
        """How long ago the newest record was made; 0 before the first."""
        record = self.record
        return 0.0 if record is None else max(0.0, self._clock() - record.measurement.at_s)

    @property
    def most_cores(self) -> int | None:
        """The bound of the run's cores; None while its options are not known."""
        most = (self.assembly.get("bounds") or {}).get("most")
        return None if most is None else int(most)

    def watched(self) -> Watched | None:
        """For metrics; None before the first record."""
        with self._lock:
            if self.record is None:
                return None
            up = self.failure is None
            return Watched(self.name, self.record, self.totals, self.most_cores, up)

    def _tell(self, record: Record) -> None:
        at_s = record.measurement.at_s
        if changes_of(record):
            if again(self._wish, record) and self._decisions:
                last = self._decisions[-1]
                self._decisions[-1] = replace(last, times=last.times + 1)
            else:
                self._decisions.append(_told(record))
            self._wish = record
        for note in record.decision.notes:
            self._notes.pop(note, None)
            self._notes[note] = at_s
        while len(self._notes) > NOTES:
            del self._notes[next(iter(self._notes))]


def _told(record: Record) -> ToldDecision:
    return ToldDecision(
        record.measurement.at_s,
        words_of(record),
        outcome_of(record),
        record.decision.reason,
        expected_of(record),
        record.acted,
    )
