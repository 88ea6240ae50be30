"""Writes each decision of a control loop to the log, in one line."""

from tidegate.control.decision import deal_words, preview_words
from tidegate.control.record import Record
from tidegate.logs import PipelineLogger


class DecisionLog:
    """Logs the decisions of one loop: changes at INFO, ticks that change nothing at DEBUG.

    A change that is held back is wanted again at every tick. It is logged once, and again when the
    wish or the reason for holding it back has changed. Notes are logged when they are new.
    """

    def __init__(self, log: PipelineLogger) -> None:
        self._log = log
        self._wish = ""
        self._notes: frozenset[str] = frozenset()

    def write(self, record: Record) -> None:
        """Log the decision of one tick."""
        notes = frozenset(record.decision.notes)
        for note in record.decision.notes:
            if note not in self._notes:
                self._log.info("note: %s", note)
        self._notes = notes
        changes = _changes(record)
        if not changes:
            self._wish = ""
            self._log.debug("hold: %s", record.decision.reason)
            return
        outcome = "" if record.acted else f" (not done: {_kind(record.held_back)})"
        wish = f"{changes}{outcome}"
        if not record.acted and wish == self._wish:
            return
        self._wish = wish
        held_back = "" if record.acted else f" (not done: {record.held_back})"
        self._log.info("%s%s: %s", changes, held_back, record.decision.reason)


def _kind(held_back: str | None) -> str:
    """The reason for holding a change back without its numbers, which change at every tick."""
    return "".join(letter for letter in held_back or "" if not letter.isdigit())


def _changes(record: Record) -> str:
    """What the decision changes, in words; empty if it holds."""
    decision, measurement = record.decision, record.measurement
    tasks = {operator.name: operator.tasks for operator in measurement.operators}
    said = []
    if decision.cores is not None:
        said.append(f"cores {measurement.cores_asked} to {decision.cores}")
    for name, count in decision.tasks.items():
        said.append(f"tasks of {name} {tasks.get(name, '?')} to {count}")
    said += [f"move {len(m)} shards of {name}" for name, m in decision.moves.items() if m]
    for name, shares in decision.deal.items():
        said.append(f"deal the rows of {name} {deal_words(shares)}")
    said += [preview_words(name, begins) for name, begins in decision.preview.items()]
    if decision.keep is not None:
        said.append(f"keep {decision.keep:.1%} of the rows")
    elif decision.keep_by_class:
        said.append("keep other shares of some classes")
    return ", ".join(said)
