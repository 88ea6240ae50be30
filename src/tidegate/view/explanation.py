"""The explanation of a run: its bottlenecks, its decisions, and the state it fetched."""

from dataclasses import dataclass
from typing import Any

from tidegate.view.figures import milliseconds, rounded
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
            parts.append(f"load {self.before.load:.0%} to {self.after.load:.0%}")
        before, after = self.before.bottleneck, self.after.bottleneck
        if before and after and before != after:
            parts.append(f"bottleneck {before} to {after}")
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
        """The result in one sentence."""
        operators = self.by_operator()
        if not operators:
            return "No bottleneck was found: no operator was measured while it processed rows."
        name, (named_s, _) = next(iter(operators.items()))
        total_s = sum(span.seconds for span in self.spans)
        worst, (_, most_s) = max(operators.items(), key=lambda pair: pair[1][1])
        first = f"`{name}` was the bottleneck {named_s / max(total_s, 1e-9):.0%} of the time"
        if most_s <= 0.0:
            return f"{first}; nothing limited the pipeline: no load reached 85 % of a capacity."
        whose = "it" if worst == name else f"`{worst}`"
        return f"{first}; {whose} limited the pipeline for {most_s:,.0f} s of {total_s:,.0f} s."

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
            "lag": self.lag,
            "source_limits": [
                {"what": what, "seconds": round(seconds, 3)} for what, seconds in self.source_limits
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
