"""The changes that a record asks for, in numbers and in words, for every view alike."""

from dataclasses import dataclass
from typing import Literal

from tidegate.control.decision import deal_words, parts_words, preview_words
from tidegate.control.record import Record
from tidegate.units import format_duration, format_share

Kind = Literal["cores", "tasks", "moves", "deal", "parts", "preview", "shedding"]


@dataclass(frozen=True, slots=True)
class WantedChange:
    """One change that a decision asks for."""

    kind: Kind
    before: float | None
    """None where the measurement has no value for it."""
    after: float
    """Cores, tasks, shards moved, tasks that rows are dealt to, parts of a task, 1 or 0 for
    previews that begin or end, or the fraction of rows kept."""
    operator: str | None = None
    shares: tuple[float, ...] = ()
    """Of a deal."""

    @property
    def step(self) -> float:
        """The difference, negative for less; 0 where a difference has no meaning."""
        return 0.0 if self.before is None else self.after - self.before

    @property
    def words(self) -> str:
        """The change as a short phrase."""
        if self.kind == "shedding":
            return f"keep {format_share(self.after)} of the rows"
        if self.kind == "moves":
            return f"move {self.after:.0f} {_shards(self.after)} of {self.operator}"
        if self.kind == "deal":
            return f"deal the rows of {self.operator} {deal_words(self.shares)}"
        if self.kind == "parts":
            return parts_words(self.operator or "", round(self.after))
        if self.kind == "preview":
            return preview_words(self.operator or "", self.after > 0.0)
        what = "cores" if self.kind == "cores" else f"tasks of {self.operator}"
        if self.before is None:
            return f"{what} to {self.after:.0f}"
        return f"{what} {self.before:.0f} to {self.after:.0f}"


def changes_of(record: Record) -> tuple[WantedChange, ...]:
    """The changes that a record's decision asks for, without those already in force."""
    measurement, decision = record.measurement, record.decision
    tasks = {operator.name: operator.tasks for operator in measurement.operators}
    found = []
    if decision.cores is not None:
        found.append(WantedChange("cores", measurement.cores_asked, decision.cores))
    for name, after in decision.tasks.items():
        found.append(WantedChange("tasks", tasks.get(name), after, name))
    for name, moves in decision.moves.items():
        if moves:
            found.append(WantedChange("moves", None, len(moves), name))
    for name, shares in decision.deal.items():
        found.append(WantedChange("deal", None, len(shares), name, shares))
    for name, parts in decision.parts.items():
        found.append(WantedChange("parts", None, parts, name))
    for name, begins in decision.preview.items():
        found.append(WantedChange("preview", None, float(begins), name))
    if decision.keep is not None:
        found.append(WantedChange("shedding", None, decision.keep))
    return tuple(change for change in found if change.before != change.after)


def words_of(record: Record) -> str:
    """All of its changes, in one phrase."""
    return ", ".join(change.words for change in changes_of(record)) or "nothing to change"


def outcome_of(record: Record) -> str:
    """What happened to the decision: done, held back, or not acted on."""
    if record.acted:
        return "done"
    if record.held_back is not None:
        return f"held back: {record.held_back}"
    return "not acted on"


def expected_of(record: Record) -> str:
    """The latency that the decision expects, in words; empty where it has none."""
    expected_s = record.decision.expected_latency_s
    return "" if expected_s is None else f"expected mean latency {format_duration(expected_s)}"


def again(before: Record | None, record: Record) -> bool:
    """Whether this repeats a decision that was held back, as every tick of a cooldown does."""
    if before is None or before.acted or record.acted:
        return False
    return changes_of(record) == changes_of(before)


def _shards(number: float) -> str:
    return "shard" if number == 1 else "shards"
