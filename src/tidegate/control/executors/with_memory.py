"""A policy around another one that sees to it that no executor is killed for want of memory.

It has two remedies. Where usual batches leave too little, more cores are kept, which divides their
rows among more executors. Where the next batch is so large that even this is too late or too
little, its tasks work in parts. Latency has no say in either: a killed executor costs more.
"""

from collections.abc import Mapping
from dataclasses import replace

from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision
from tidegate.control.executors.memory_outlook import TOO_FULL, MemoryOutlook
from tidegate.control.learning.executor_speeds import executor_words
from tidegate.control.measurement import (
    Measurement,
    OperatorMeasurement,
    SegmentMeasurement,
)
from tidegate.control.policy import Policy
from tidegate.control.wrapper import Wrapper
from tidegate.units import format_share

_DANGER = 0.9
"""From here on the next batch does not wait for cores: parts cost time, and are made at once."""
_CALM = 1.25
"""Fewer parts are made only when they would also be enough for so many times the rows."""


class WithMemory(Wrapper):
    """The inner policy, with the cores and the parts that memory asks for."""

    def __init__(self, inner: Policy, cores_per_executor: int = 1) -> None:
        super().__init__(inner)
        self._whole = cores_per_executor
        self._outlook = MemoryOutlook()
        self._running: dict[str, float] = {}
        """About how many rows the running batch of each segment has."""
        self._least = 0
        """Cores that are kept for memory; 0: none are."""

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """The inner policy's decision, raised to the cores that memory asks for, with parts."""
        self._outlook.observe(measurement)
        self._see_batches(measurement)
        most = constraints.allowed.most
        asked = measurement.cores_asked
        least = min(self._cores(measurement), most)
        if least > constraints.bounds.least:
            bounds = replace(constraints.bounds, least=least)
            decision = self.inner.decide(measurement, replace(constraints, bounds=bounds))
        else:
            decision = self.inner.decide(measurement, constraints)
        wanted = asked if decision.cores is None else decision.cores
        if least > wanted and least > asked:
            decision = replace(decision, cores=least, expected_latency_s=None)
        if least > asked and decision.cores == least:
            decision = replace(decision, reason=f"{self._why(asked, least)}; {decision.reason}")
        return self._in_parts(decision, measurement)

    def _cores(self, measurement: Measurement) -> int:
        """The fewest cores with which usual batches leave enough memory."""
        outlook, rows = self._outlook, self._outlook.usual_rows
        granted = measurement.cores_granted
        needed = outlook.cores_for(rows, TOO_FULL)
        if needed is None or not outlook.helps:
            return self._least
        if outlook.fullness(rows, granted) > TOO_FULL and needed > granted:
            needed = outlook.cores_for(rows) or needed
        elif needed < self._least and rows:
            needed = min(outlook.cores_for(_CALM * rows, TOO_FULL) or needed, self._least)
        # One executor is there in any case, so memory has a say from the second one on.
        self._least = -(-needed // self._whole) * self._whole if needed > self._whole else 0
        return self._least

    def _why(self, asked: int, least: int) -> str:
        fullest, rows = self._outlook.fullest, self._outlook.usual_rows
        assert fullest is not None and fullest.limit_bytes
        after = self._outlook.fullness(rows, least)
        return (
            f"memory: {executor_words(fullest.name)} has used {format_share(fullest.fullness)} of"
            f" {_size(fullest.limit_bytes)}; with {least} cores instead of {asked} it will be"
            f" about {format_share(after)}"
        )

    def _in_parts(self, decision: Decision, measurement: Measurement) -> Decision:
        wanted = self._parts(measurement)
        if not wanted:
            return decision
        fullest = self._outlook.fullest
        rows = max(self._next_rows(one, measurement.step_s) for one in measurement.segments)
        names = ", ".join(f"'{name}'" for name in wanted)
        parts = max(wanted.values())
        why = f"memory: the rows of {names} fit at once again"
        if parts > 1 and fullest is not None and fullest.limit_bytes:
            full = self._outlook.fullness(rows, measurement.cores_granted)
            why = (
                f"memory: {rows:,.0f} rows at once would take {format_share(full)} of the"
                f" {_size(fullest.limit_bytes)} of {executor_words(fullest.name)}, so tasks of"
                f" {names} work in {parts} parts"
            )
        return replace(decision, reason=f"{decision.reason}; {why}", parts=wanted)

    def _parts(self, measurement: Measurement) -> Mapping[str, int]:
        """The operators whose tasks are to work in another number of parts."""
        found = {}
        coming = {
            one.name: self._next_rows(one, measurement.step_s) for one in measurement.segments
        }
        cores = max(measurement.cores_granted, 1)
        for one in measurement.operators:
            if not one.route or one.dealt:
                continue
            rows = coming.get(one.segment, 0.0)
            most = max(len(one.route) // max(one.tasks, 1), 1)
            parts = self._parts_of(one, rows, cores, most)
            if parts != one.parts:
                found[one.name] = parts
        return found

    def _next_rows(self, segment: SegmentMeasurement, step_s: float) -> float:
        """The rows of the next batch if it begins before the next tick: those that wait then."""
        waiting = segment.backlog_rows
        if not segment.between:
            waiting += segment.arrival_rate * step_s - self._running.get(segment.name, 0.0)
        return max(waiting, self._outlook.usual_rows)

    def _see_batches(self, measurement: Measurement) -> None:
        """After the end of a batch, what has not been done by then is in the next one."""
        for one in measurement.segments:
            if one.batches:
                self._running[one.name] = 0.0 if one.between else one.backlog_rows

    def _parts_of(self, one: OperatorMeasurement, rows: float, cores: int, most: int) -> int:
        if one.parts == 1 and self._outlook.fullness(rows, cores) <= _DANGER:
            return 1
        parts = min(self._outlook.parts_for(rows, cores), most)
        if parts < one.parts:
            parts = min(self._outlook.parts_for(_CALM * rows, cores), one.parts, most)
        return parts


def _size(count: float) -> str:
    """Bytes for a person."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
