"""What hindsight says of a decision: it was right, it was wrong in one of five ways, or unknown."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["late_out", "needless_out", "early_in", "late_in", "model_off"]

KINDS: dict[Kind, str] = {
    "late_out": "scaled out too late",
    "needless_out": "scaled out without need",
    "early_in": "scaled in too early",
    "late_in": "scaled in too late",
    "model_off": "made on a model that was off",
}
"""The kinds of wrong decisions, in words, in the order in which they are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """How a decision was wrong."""

    kind: Kind
    why: str
    """The reason, from the records, as the end of a sentence."""
    option: str | None = None
    """The option that would change it; None where there is none."""
    core_seconds: float = 0.0
    """What it cost in cores."""
    missed_s: float = 0.0
    """Seconds above the target that it explains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedDecision:
    """One decision that changed the cores, as it looks afterwards."""

    at_s: float
    """Seconds since the start of the first tick."""
    before: int
    after: int
    fault: Fault | None = None
    """None if the decision was right, or nothing is known."""
    unknown: str | None = None
    """Why it cannot be judged; None if it can."""

    @property
    def what(self) -> str:
        """The change in words."""
        return f"cores {self.before} to {self.after}"
