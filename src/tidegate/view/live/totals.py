"""What a pipeline did in all, added up record by record: rows, decisions, core-seconds, misses."""

from collections import Counter

from tidegate.control.control_failure import ControlFailure
from tidegate.control.record import Record
from tidegate.view.changes import WantedChange, changes_of
from tidegate.view.judge import Judge, Statistic, statistic_of

ACTIONS = (
    "scale_out",
    "scale_in",
    "tasks",
    "moves",
    "deal",
    "preview",
    "shedding",
    "held_back",
    "hold",
)
"""What a tick can have come to; a decision may be several of them."""
UNCLASSED = "none"
"""The class of shed rows that belong to no declared class."""


class RunTotals:
    """Sums over the records of one pipeline, since the first that was seen."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.arrived_rows = 0.0
        self.rows = 0.0
        """Rows completed."""
        self.latency_rows = 0.0
        """Rows of ticks that have a latency."""
        self.latency_row_seconds = 0.0
        """Mean latency times rows, over these ticks."""
        self.shed: Counter[str] = Counter()
        """Rows shed, by class."""
        self.late: Counter[str] = Counter()
        """Late rows, by operator."""
        self.skipped: Counter[str] = Counter()
        """Rows that a function could not process, by operator."""
        self.decisions: Counter[str] = Counter()
        self.failures = 0
        """Ticks that failed."""
        self.noticed: set[str] = set()
        """Kinds of notices that have begun and not ended."""
        self.core_seconds = 0.0
        self.most_cores = 0
        """The most cores that were asked for: what a static allocation would need."""
        self.judged_seconds = 0.0
        self.met_seconds = 0.0
        self.statistic: Statistic = "mean"
        """What the target is for."""
        self.judged_s: float | None = None
        """The latency that the last tick is judged by; None where there was nothing to judge."""
        self._judge: Judge | None = None

    def add(self, record: Record) -> None:
        """Add a tick."""
        tick = record.measurement
        if self._judge is None or record.assembly is not None:
            self.statistic = statistic_of(record)
            self._judge = Judge(tick.at_s - tick.interval_s, self.statistic)
        self.judged_s = self._judge.latency_s(record)
        if self.judged_s is not None and record.target_s is not None:
            self.judged_seconds += tick.interval_s
            self.met_seconds += tick.interval_s if self.judged_s <= record.target_s else 0.0
        if record.tick == 1:
            self.noticed.clear()  # a run that was killed could not tell the end
        for notice in record.notices:
            (self.noticed.discard if notice.ended else self.noticed.add)(notice.kind)
        rows = tick.processed_rate * tick.interval_s
        self.seconds += tick.interval_s
        self.arrived_rows += tick.arrival_rate * tick.interval_s
        self.rows += rows
        if tick.latency is not None:
            self.latency_rows += rows
            self.latency_row_seconds += rows * tick.latency.mean_s
        self.core_seconds += tick.cores_granted * tick.interval_s
        chosen = record.decision.cores if record.acted else None
        self.most_cores = max(self.most_cores, tick.cores_asked, chosen or 0)
        self._add_shed(record)
        for one in tick.operators:
            if one.late_rows:
                self.late[one.name] += one.late_rows
            if one.skipped_rows:
                self.skipped[one.name] += one.skipped_rows
        self.decisions.update(actions_of(record))

    def failed(self, failure: ControlFailure) -> None:
        """Add a tick that failed."""
        self.failures += 1

    @property
    def static_core_seconds(self) -> float:
        """What the most cores would have used if they had been there all the time."""
        return self.most_cores * self.seconds

    @property
    def cost(self) -> float | None:
        """Core-seconds as a fraction of that."""
        static = self.static_core_seconds
        return self.core_seconds / static if static > 0.0 else None

    @property
    def within_target(self) -> float | None:
        """The share of the judged seconds within the target."""
        return self.met_seconds / self.judged_seconds if self.judged_seconds > 0.0 else None

    def _add_shed(self, record: Record) -> None:
        for source in record.measurement.sources:
            for part in source.classes:
                self.shed[part.name] += part.shed
            rest = source.shed - sum(part.shed for part in source.classes)
            if rest > 0 or not source.classes:
                self.shed[UNCLASSED] += rest


def actions_of(record: Record) -> tuple[str, ...]:
    """What a tick came to, each action once."""
    changes = changes_of(record)
    if not changes:
        return ("hold",)
    if not record.acted:
        return ("held_back",)
    return tuple(dict.fromkeys(_action(change) for change in changes))


def _action(change: WantedChange) -> str:
    if change.kind != "cores":
        return change.kind
    return "scale_in" if change.step < 0 else "scale_out"
