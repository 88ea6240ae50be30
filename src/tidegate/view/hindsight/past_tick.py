"""One tick of a run, together with what is known of it afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.control.learning.outliers import COLD, FIRST
from tidegate.control.record import Record
from tidegate.view.hindsight.causes import held_back_cause
from tidegate.view.hindsight.needs import Need
from tidegate.view.hindsight.settings import InForce
from tidegate.view.judge import Judge, statistic_of

_NORMAL_BACKLOG = 1.4
"""A backlog up to this many times what arrives within the target is normal: a pipeline on target
holds as many rows as arrive within it by Little's law, and a third more before a batch ends."""


@dataclass(frozen=True, slots=True)
class PastTick:
    """A record, the settings of its time, what it needed, and whether it met its target."""

    record: Record
    settings: InForce
    need: Need | None
    """None where the cost of a batch is not known, or there is no target."""
    met: bool | None
    """None where there was nothing to judge."""

    @property
    def at_s(self) -> float:
        """The end of the tick, in seconds since the epoch."""
        return self.record.measurement.at_s

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.record.measurement.interval_s

    @property
    def granted(self) -> int:
        """Cores that were there."""
        return self.record.measurement.cores_granted

    @property
    def asked(self) -> int:
        """Cores that were asked for before this tick's decision."""
        return self.record.measurement.cores_asked

    @property
    def missed(self) -> bool:
        """Whether it missed its target."""
        return self.met is False

    @property
    def short(self) -> bool:
        """Whether it had fewer cores than enough."""
        return self.need is not None and self.granted < self.need.enough

    @property
    def piled_up(self) -> bool:
        """Whether more rows wait than a run on target ever has."""
        tick, target = self.record.measurement, self.settings.target
        within_s = 0.0 if target is None else target.mean_s
        return tick.backlog_rows > _NORMAL_BACKLOG * within_s * tick.arrival_rate + 1.0

    @property
    def catching_up(self) -> bool:
        """Whether rows that had piled up were worked off, or were late for another reason."""
        return self.missed or "catch_up_s" in self.record.beliefs

    @property
    def first_batches(self) -> bool:
        """Whether a first batch of a query ended, one that loaded and compiled code."""
        return any(
            batch.outlier in (FIRST, COLD)
            for segment in self.record.measurement.segments
            for batch in segment.batches
        )

    @property
    def held_back(self) -> str | None:
        """The cause that held a change of cores back; None if nothing did."""
        cores = self.record.decision.cores
        return None if cores is None or cores == self.asked else held_back_cause(self.record)


def met_of(run: Sequence[Record]) -> list[bool | None]:
    """Whether each tick of one run met its target, as everywhere else a run is judged."""
    first = run[0].measurement
    judge = Judge(first.at_s - first.interval_s, statistic_of(run[0]))
    return [judge.met(record) for record in run]
