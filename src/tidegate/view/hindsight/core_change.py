"""A decision that changed the cores of a run, with the ticks around it."""

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.view.changes import changes_of
from tidegate.view.hindsight.past_tick import PastTick

SOON_S = 30.0
"""Cores that are needed within so long were worth having; three times the time to grant cores, if
that is longer."""
JUDGED_S = 5.0
"""A decision is not judged by less than this of what followed it."""


@dataclass(frozen=True, slots=True)
class ChangedCores:
    """One acted decision, at `place` among the ticks of its run."""

    ticks: Sequence[PastTick]
    start_s: float
    """The start of the first tick of the records, in seconds since the epoch."""
    place: int
    before: int
    after: int
    until: int
    """The place of the next such decision, or that of the last tick."""

    @property
    def at(self) -> PastTick:
        """The tick that decided it."""
        return self.ticks[self.place]

    @property
    def soon_s(self) -> float:
        """How far ahead a decision is judged."""
        return max(SOON_S, 3.0 * (self.at.record.measurement.grant_s or 0.0))

    def second(self, place: int) -> float:
        """The beginning of a tick, in seconds since the start."""
        tick = self.ticks[place]
        return tick.at_s - tick.seconds - self.start_s

    def following(self, seconds: float) -> list[PastTick]:
        """The ticks of so many seconds after the decision."""
        end_s = self.at.at_s + seconds
        found = []
        for tick in self.ticks[self.place + 1 :]:
            if tick.at_s > end_s + 1e-9:
                break
            found.append(tick)
        return found

    def in_force(self) -> Sequence[PastTick]:
        """The ticks after the decision, up to the next one."""
        return self.ticks[self.place + 1 : self.until + 1]


def changes_of_cores(ticks: Sequence[PastTick], start_s: float) -> list[ChangedCores]:
    """The decisions of one run that were acted on and changed its cores."""
    found = []
    for place, tick in enumerate(ticks):
        for change in changes_of(tick.record) if tick.record.acted else ():
            if change.kind == "cores" and change.before is not None:
                found.append((place, int(change.before), int(change.after)))
    ends = [place for place, _, _ in found[1:]] + [len(ticks) - 1]
    return [
        ChangedCores(ticks, start_s, place, before, after, until)
        for (place, before, after), until in zip(found, ends, strict=False)
    ]
