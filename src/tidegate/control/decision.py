"""What a policy decides: what to change, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.units import format_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to change before the next micro-batch; `None` and empty mean "leave it as it is"."""

    reason: str
    """One sentence for a person."""
    cores: int | None = None
    """Cores (a backtest's machines) to have in total."""
    tasks: Mapping[str, int] = field(default_factory=dict)
    """Tasks per operator."""
    moves: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Shards to move, per operator: shard to task."""
    deal: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Shares of the rows for the tasks of maps that have tasks of their own, which then stay on
    their executors. Empty shares: rows are dealt in turn again, and tasks run anywhere."""
    release_first: tuple[str, ...] = ()
    """Executors to release before others where there are too many: the slow ones, slowest first."""
    parts: Mapping[str, int] = field(default_factory=dict)
    """In how many parts, one after the other, each task of a keyed operator works on its rows, so
    that they fit into its memory; 1: in one."""
    preview: Mapping[str, bool] = field(default_factory=dict)
    """Operators whose rows are to be counted by shard before each batch is routed, or no longer."""
    keep: float | None = None
    """Fraction of the rows not to shed."""
    keep_span_s: float | None = None
    """Time over which the rows of the batch that `keep` was planned for arrive. A batch whose rows
    arrive over a longer or shorter time keeps the same number of rows, not the same fraction. None:
    the fraction holds for every batch."""
    keep_by_class: Mapping[str, float] = field(default_factory=dict)
    """Fractions for single classes of rows; classes that are not named follow `keep`."""
    notes: tuple[str, ...] = ()
    """Remarks for a person, whether or not something changes."""
    expected_latency_s: float | None = None
    """The mean latency that the model expects once the change is in force."""

    @property
    def holds(self) -> bool:
        """True when nothing is to change."""
        nothing = self.cores is None and not self.tasks and not self.moves and not self.deal
        nothing = nothing and not self.parts and not self.preview
        return nothing and self.keep is None and not self.keep_by_class


def deal_words(shares: tuple[float, ...]) -> str:
    """The shares of a deal for a person."""
    return " : ".join(format_share(share) for share in shares) if shares else "in turn"


def parts_words(operator: str, parts: int) -> str:
    """Parts of tasks for a person."""
    if parts == 1:
        return f"process the rows of {operator} at once again"
    return f"process the rows of {operator} in {parts} parts"


def preview_words(operator: str, begins: bool) -> str:
    """The beginning or the end of previews for a person."""
    no_longer = "" if begins else "no longer "
    return f"{no_longer}count the rows of {operator} before they are routed"


def hold(reason: str) -> Decision:
    """A decision to change nothing."""
    return Decision(reason=reason)
