"""The explanation of a run: bottlenecks, decisions, what batches took, and hindsight."""

from dataclasses import dataclass, replace
from typing import Any

from tidegate.control.bottleneck import LIMITING_LOAD
from tidegate.units import format_duration
from tidegate.view.batch_time import SegmentTime
from tidegate.view.cores_used import CoresUsed
from tidegate.view.figures import milliseconds, rounded
from tidegate.view.hindsight.hindsight import Best, Hindsight
from tidegate.view.networks import NetworkMoment
from tidegate.view.sizes import readable


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A time during which one operator was the bottleneck."""

    operator: str
    begin_s: float
    """Seconds since the start of the first tick."""
    end_s: float
    limiting_s: float
    """How much of that time the operator limited the pipeline (f >= 0.85 c)."""
    load: float
    """Mean of the offered rate over the capacity."""
    peak_load: float
    least_tasks: int
    most_tasks: int
    gain: float
    """Median of the relative capacity that one more task would have added."""

    @property
    def seconds(self) -> float:
        """The length of the span."""
        return self.end_s - self.begin_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The pipeline over a few ticks; None where no tick has a value."""

    latency_s: float | None
    load: float | None
    capacity_rate: float | None
    bottleneck: str | None

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "mean_ms": milliseconds(self.latency_s),
            "load": rounded(self.load, 4),
            "capacity_rate": rounded(self.capacity_rate, 1),
            "bottleneck": self.bottleneck,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedDecision:
    """A decision that asked for a change, with its effect."""

    at_s: float
    what: str
    why: str
    outcome: str
    acted: bool
    expected_latency_s: float | None
    before: Moment
    after: Moment
    durable_bytes: int
    """State that nodes fetched between this change and the next; 0 where nothing was done."""

    @property
    def came(self) -> str:
        """The effect in words: latency expected and measured, load, bottleneck, state fetched."""
        if not self.acted:
            return ""
        parts = []
        came_s, expected_s = self.after.latency_s, self.expected_latency_s
        if came_s is not None and expected_s:
            off = came_s / expected_s - 1.0
            parts.append(f"mean {expected_s:.2f} s expected, {came_s:.2f} s measured ({off:+.0%})")
        elif came_s is not None and self.before.latency_s is not None:
            parts.append(f"mean {self.before.latency_s:.2f} s before, {came_s:.2f} s after")
        if self.before.load is not None and self.after.load is not None:
            parts.append(f"fullest operator {self.before.load:.0%} to {self.after.load:.0%}")
        before, after = self.before.bottleneck, self.after.bottleneck
        if before and after and before != after:
            parts.append(f"the fullest operator is now {after}, not {before}")
        if self.durable_bytes:
            parts.append(f"{readable(self.durable_bytes)} of state fetched")
        return "; ".join(parts) or "too few ticks to judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything that is said about a run."""

    seconds: float
    ticks: int
    policies: tuple[str, ...]
    spans: tuple[Span, ...]
    steps: tuple[ExplainedDecision, ...]
    fetched: tuple[tuple[str, int], ...]
    """Operators whose nodes fetched state, with the bytes, largest first."""
    networks: tuple[NetworkMoment, ...] = ()
    """The flow networks that are drawn, oldest first."""
    lag: str = ""
    """One sentence about rows that stayed in the sources; empty where these do not tell."""
    source_limits: tuple[tuple[str, float], ...] = ()
    """What limited the run at its sources, with the seconds for which it did, longest first."""
    executors: tuple[tuple[str, float], ...] = ()
    """What was special about executors, with the seconds for which it was so, longest first."""
    batches: tuple[SegmentTime, ...] = ()
    """What the time of batches went to, by segment or query, the slowest first."""
    cores: CoresUsed
    latency_s: float | None = None
    """Mean latency over all rows."""
    target_s: float | None = None
    """The last target that was in force."""
    hindsight: Hindsight

    def with_best(self, best: Best | None) -> "Explanation":
        """The same, with what an oracle found for the run."""
        return replace(self, hindsight=replace(self.hindsight, best=best))

    @property
    def limiting_s(self) -> float:
        """Seconds in which any operator limited the pipeline."""
        return sum(span.limiting_s for span in self.spans)

    def by_operator(self) -> dict[str, tuple[float, float]]:
        """How long each operator was the bottleneck, and how long it limited the pipeline."""
        found: dict[str, tuple[float, float]] = {}
        for span in self.spans:
            named_s, limiting_s = found.get(span.operator, (0.0, 0.0))
            found[span.operator] = (named_s + span.seconds, limiting_s + span.limiting_s)
        return dict(sorted(found.items(), key=lambda pair: -pair[1][0]))

    @property
    def headline(self) -> str:
        """The result in a sentence or two."""
        operators = self.by_operator()
        if not operators:
            return self._of_queries()
        worst, (_, most_s) = max(operators.items(), key=lambda pair: pair[1][1])
        if most_s <= 0.0:
            return self._nothing_full(next(iter(operators)))
        peak = max(span.peak_load for span in self.spans if span.operator == worst)
        total_s = sum(span.seconds for span in self.spans)
        first = (
            f"`{worst}` limited the pipeline for {most_s:,.0f} s of {total_s:,.0f} s: rows came to"
            f" it at {LIMITING_LOAD:.0%} or more of the rate that its tasks can process"
            f" ({peak:.0%} at most)."
        )
        others = [
            f"`{name}` for {limiting_s:,.0f} s"
            for name, (_, limiting_s) in operators.items()
            if limiting_s > 0.0 and name != worst
        ]
        return f"{first} So did {', '.join(others)}." if others else first

    def _nothing_full(self, name: str) -> str:
        """What is said of a run in which no operator was full."""
        mine = [span for span in self.spans if span.operator == name]
        mean = sum(span.load * span.seconds for span in mine) / sum(span.seconds for span in mine)
        return (
            f"No operator limited the pipeline. `{name}` was the fullest: rows came to it at"
            f" {mean:.0%} of the rate that its tasks can process, and at"
            f" {max(span.peak_load for span in mine):.0%} at most. From {LIMITING_LOAD:.0%} on, an"
            " operator limits the pipeline."
        )

    def _of_queries(self) -> str:
        """What is said where nothing is known of operators, as of foreign queries."""
        if not self.batches:
            return "No bottleneck was found: no operator was measured while it processed rows."
        name = self.batches[0].segment
        many = len(self.batches)
        said = "" if many == 1 else f"`{name}` was the slowest of {many} queries."
        if self.latency_s is not None:
            target = "" if self.target_s is None else f", target {format_duration(self.target_s)}"
            said += (
                f" Rows{f' of `{name}`' if many == 1 else ''} took"
                f" {format_duration(self.latency_s)} on average, from their arrival to the end of"
                f" their batch{target}."
            )
        return said.strip() or f"One query ran: `{name}`."

    @property
    def durable_bytes(self) -> int:
        """All the state that nodes fetched."""
        return sum(number for _, number in self.fetched)

    @property
    def fetching(self) -> str:
        """One sentence about state that nodes fetched; empty if there was none."""
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
            "headline": self.headline,
            "lag": self.lag,
            "source_limits": [
                {"what": what, "seconds": round(seconds, 3)} for what, seconds in self.source_limits
            ],
            "executors": [
                {"what": what, "seconds": round(seconds, 3)} for what, seconds in self.executors
            ],
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
            "cores": self.cores.document(),
            "batches": [one.document() for one in self.batches],
            "mean_ms": milliseconds(self.latency_s),
            "target_ms": milliseconds(self.target_s),
            "hindsight": self.hindsight.document(),
            "networks": [moment.document() for moment in self.networks],
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
                    "expected_ms": milliseconds(step.expected_latency_s),
                    "before": step.before.document(),
                    "after": step.after.document(),
                    "state_fetched_bytes": step.durable_bytes,
                    "came": step.came,
                }
                for step in self.steps
            ],
        }
