"""What comes out of a policy: what to change, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to change before the next micro-batch; `None` and empty mean "leave it as it is"."""

    reason: str
    """One sentence for a person."""
    cores: int | None = None
    """Cores (a backtest's machines) to have in total."""
    tasks: Mapping[str, int] = field(default_factory=dict)
    """Tasks per operator."""
    expected_latency_s: float | None = None
    """The mean latency that the model expects once the change is in force."""

    @property
    def holds(self) -> bool:
        """True when nothing is to change."""
        return self.cores is None and not self.tasks


def hold(reason: str) -> Decision:
    """A decision to change nothing."""
    return Decision(reason=reason)
