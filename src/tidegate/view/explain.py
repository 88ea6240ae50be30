"""A run looked back at: where it was limited, what was decided, and what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegate.control.bottleneck import Bottleneck
from tidegate.control.flow.bottleneck import BottleneckFinder
from tidegate.control.record import Record
from tidegate.errors import AskedWrongly
from tidegate.view.changes import again, changes_of, outcome_of, words_of
from tidegate.view.sizes import readable

SETTLING = 2
"""Ticks after a change that say nothing of it yet."""
AFTER_S = 30.0
"""What came of a change is told from so much of the time behind it, up to the next change."""
BEFORE_S = 5.0
_GAP = 5.0
"""So many ticks' time without a tick: the run was down in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A time during which the same operator was the bottleneck."""

    operator: str
    begin_s: float
    """Since the first tick began."""
    end_s: float
    limiting_s: float
    """How long of it the operator limited the pipeline already (f >= 0.85 c)."""
    load: float
    """Mean of what was offered over what could be carried."""
    peak_load: float
    least_tasks: int
    most_tasks: int
    gain: float
    """Median of what one more task would have given."""

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return self.end_s - self.begin_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The pipeline over a few ticks; None where no tick told."""

    latency_s: float | None
    load: float | None
    capacity_rate: float | None
    bottleneck: str | None

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "mean_ms": None if self.latency_s is None else round(1000 * self.latency_s, 1),
            "load": _rounded(self.load, 4),
            "capacity_rate": _rounded(self.capacity_rate, 1),
            "bottleneck": self.bottleneck,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A decision that wanted a change."""

    at_s: float
    what: str
    why: str
    outcome: str
    acted: bool
    expected_latency_s: float | None
    before: Moment
    after: Moment
    durable_bytes: int
    """State that nodes fetched from then on, up to the next change; 0 where nothing was done."""

    @property
    def came(self) -> str:
        """What it did, for a person: expected against what happened."""
        if not self.acted:
            return ""
        parts = []
        came_s, expected_s = self.after.latency_s, self.expected_latency_s
        if came_s is not None and expected_s:
            off = came_s / expected_s - 1.0
            parts.append(f"mean {expected_s:.2f} s expected, {came_s:.2f} s came ({off:+.0%})")
        elif came_s is not None and self.before.latency_s is not None:
            parts.append(f"mean {self.before.latency_s:.2f} s before, {came_s:.2f} s after")
        if self.before.load is not None and self.after.load is not None:
            parts.append(f"load {self.before.load:.0%} to {self.after.load:.0%}")
        before, after = self.before.bottleneck, self.after.bottleneck
        if before and after and before != after:
            parts.append(f"bottleneck {before} to {after}")
        if self.durable_bytes:
            parts.append(f"{readable(self.durable_bytes)} of state fetched")
        return "; ".join(parts) or "too little time to tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All of it."""

    seconds: float
    ticks: int
    policies: tuple[str, ...]
    spans: tuple[Span, ...]
    steps: tuple[Step, ...]
    fetched: tuple[tuple[str, int], ...]
    """Operators whose nodes fetched state that they did not have, and bytes; the most first."""

    @property
    def limiting_s(self) -> float:
        """How long some operator limited the pipeline."""
        return sum(span.limiting_s for span in self.spans)

    def by_operator(self) -> dict[str, tuple[float, float]]:
        """Of each operator that ever was the bottleneck: how long, and how long it limited."""
        found: dict[str, tuple[float, float]] = {}
        for span in self.spans:
            named_s, limiting_s = found.get(span.operator, (0.0, 0.0))
            found[span.operator] = (named_s + span.seconds, limiting_s + span.limiting_s)
        return dict(sorted(found.items(), key=lambda pair: -pair[1][0]))

    @property
    def headline(self) -> str:
        """One sentence."""
        operators = self.by_operator()
        if not operators:
            return "No tick tells of a bottleneck: no operator was measured at work."
        name, (named_s, _) = next(iter(operators.items()))
        total_s = sum(span.seconds for span in self.spans)
        worst, (_, most_s) = max(operators.items(), key=lambda pair: pair[1][1])
        first = f"`{name}` was the bottleneck {named_s / max(total_s, 1e-9):.0%} of the time"
        if most_s <= 0.0:
            return f"{first}; nothing limited the pipeline: no cut was filled to 85 %."
        whose = "it" if worst == name else f"`{worst}`"
        return f"{first}; {whose} limited the pipeline for {most_s:,.0f} s of {total_s:,.0f} s."

    @property
    def durable_bytes(self) -> int:
        """State that nodes fetched, in all."""
        return sum(number for _, number in self.fetched)

    @property
    def fetching(self) -> str:
        """One sentence on state that changed its node; empty where none did."""
        if not self.fetched:
            return ""
        whose = ", ".join(f"`{name}` {readable(number)}" for name, number in self.fetched)
        return f"Nodes fetched {readable(self.durable_bytes)} of state they did not have: {whose}."

    def document(self) -> dict[str, Any]:
        """For JSON: seconds since the first tick, loads and gains as fractions."""
        return {
            "seconds": round(self.seconds, 3),
            "ticks": self.ticks,
            "policies": list(self.policies),
            "limited_seconds": round(self.limiting_s, 3),
            "state_fetched_bytes": dict(self.fetched),
            "operators": [
                {
                    "operator": name,
                    "seconds": round(named_s, 3),
                    "limiting_seconds": round(limiting_s, 3),
                }
                for name, (named_s, limiting_s) in self.by_operator().items()
            ],
            "bottlenecks": [
                {
                    "operator": span.operator,
                    "begin_s": round(span.begin_s, 3),
                    "end_s": round(span.end_s, 3),
                    "limiting_s": round(span.limiting_s, 3),
                    "load": round(span.load, 4),
                    "peak_load": round(span.peak_load, 4),
                    "tasks": [span.least_tasks, span.most_tasks],
                    "gain": round(span.gain, 4),
                }
                for span in self.spans
            ],
            "changes": [
                {
                    "at_s": round(step.at_s, 3),
                    "what": step.what,
                    "why": step.why,
                    "outcome": step.outcome,
                    "acted": step.acted,
                    "expected_ms": (
                        None
                        if step.expected_latency_s is None
                        else round(1000 * step.expected_latency_s, 1)
                    ),
                    "before": step.before.document(),
                    "after": step.after.document(),
                    "state_fetched_bytes": step.durable_bytes,
                    "came": step.came,
                }
                for step in self.steps
            ],
        }


def explain(records: Sequence[Record]) -> Explanation:
    """The story of these records, oldest first."""
    if not records:
        raise AskedWrongly("There is no record to explain: give those of at least one tick.")
    found = bottlenecks_of(records)
    first = records[0].measurement
    start_s = first.at_s - first.interval_s
    return Explanation(
        seconds=records[-1].measurement.at_s - start_s,
        ticks=len(records),
        policies=tuple(dict.fromkeys(record.policy for record in records)),
        spans=tuple(_spans(records, found, start_s)),
        steps=tuple(_steps(records, found, start_s)),
        fetched=tuple(_fetched(records)),
    )


def bottlenecks_of(records: Sequence[Record]) -> list[Bottleneck | None]:
    """Each tick's; where a record was written without one, found from its measurement now."""
    finder = BottleneckFinder()
    found = []
    for record in records:
        stale = record.measurement.stale is not None
        anew = None if stale else finder.find(record.measurement)
        found.append(record.bottleneck or anew)
    return found


def _spans(
    records: Sequence[Record], found: Sequence[Bottleneck | None], start_s: float
) -> list[Span]:
    """Ticks that tell of no bottleneck belong to the span they are in."""
    runs: list[list[int]] = []
    last_s = start_s
    for place, (record, one) in enumerate(zip(records, found, strict=True)):
        tick = record.measurement
        down = tick.at_s - tick.interval_s - last_s > _GAP * tick.interval_s
        last_s = tick.at_s
        if one is None:
            if runs and not down:
                runs[-1].append(place)
            continue
        before = found[runs[-1][0]] if runs and not down else None
        if before is not None and before.operator == one.operator:
            runs[-1].append(place)
        else:
            runs.append([place])
    return [_span(records, found, places, start_s) for places in runs]


def _span(
    records: Sequence[Record],
    found: Sequence[Bottleneck | None],
    places: Sequence[int],
    start_s: float,
) -> Span:
    told = [(records[place].measurement, one) for place in places if (one := found[place])]
    first, last = records[places[0]].measurement, records[places[-1]].measurement
    loads = [one.load for _, one in told]
    tasks = [one.tasks for _, one in told]
    return Span(
        operator=told[0][1].operator,
        begin_s=first.at_s - first.interval_s - start_s,
        end_s=last.at_s - start_s,
        limiting_s=sum(tick.interval_s for tick, one in told if one.limits),
        load=float(np.mean(loads)),
        peak_load=max(loads),
        least_tasks=min(tasks),
        most_tasks=max(tasks),
        gain=float(np.median([one.gain for _, one in told])),
    )


def _steps(
    records: Sequence[Record], found: Sequence[Bottleneck | None], start_s: float
) -> list[Step]:
    acted = [place for place, record in enumerate(records) if record.acted and changes_of(record)]
    steps: list[Step] = []
    wish = None
    for place, record in enumerate(records):
        if not changes_of(record):
            continue
        repeated, wish = again(wish, record), record
        if repeated:
            continue
        at_s = record.measurement.at_s
        until = next((other for other in acted if other > place), len(records) - 1)
        behind = [
            other
            for other in range(place + 1, until + 1)
            if records[other].measurement.at_s <= at_s + AFTER_S
        ]
        settled = behind[SETTLING:] or behind
        ahead = [
            other for other in range(place + 1) if records[other].measurement.at_s > at_s - BEFORE_S
        ]
        steps.append(
            Step(
                at_s=at_s - start_s,
                what=words_of(record),
                why=record.decision.reason,
                outcome=outcome_of(record),
                acted=record.acted,
                expected_latency_s=record.decision.expected_latency_s,
                before=_moment(records, found, ahead, last=1),
                after=_moment(records, found, settled),
                durable_bytes=sum(
                    one.durable_bytes
                    for other in range(place + 1, until + 1)
                    for one in records[other].measurement.operators
                    if record.acted
                ),
            )
        )
    return steps


def _moment(
    records: Sequence[Record],
    found: Sequence[Bottleneck | None],
    places: Sequence[int],
    last: int = 0,
) -> Moment:
    """Latency over these ticks; the bottleneck over the `last` of them (0: all)."""
    latencies, rows = [], []
    for place in places:
        tick = records[place].measurement
        if tick.latency is not None:
            latencies.append(tick.latency.mean_s)
            rows.append(max(tick.processed_rate * tick.interval_s, 1e-9))
    told = [one for place in places if (one := found[place])][-last:]
    return Moment(
        latency_s=float(np.average(latencies, weights=rows)) if latencies else None,
        load=float(np.mean([one.load for one in told])) if told else None,
        capacity_rate=float(np.mean([one.capacity_rate for one in told])) if told else None,
        bottleneck=told[-1].operator if told else None,
    )


def _fetched(records: Sequence[Record]) -> list[tuple[str, int]]:
    """Bytes of state that the nodes of each operator fetched, for those that did."""
    total: dict[str, int] = {}
    for record in records:
        for one in record.measurement.operators:
            total[one.name] = total.get(one.name, 0) + one.durable_bytes
    return sorted(((n, b) for n, b in total.items() if b), key=lambda pair: (-pair[1], pair[0]))


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
