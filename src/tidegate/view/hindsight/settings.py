"""The settings that were in force at each tick of a run, as its records tell them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.floors import Floor, raised
from tidegate.control.record import Record
from tidegate.control.target import Target

_ANY = 1 << 20
"""The maximum of a run whose options are not on record: more cores than there ever are."""


@dataclass(frozen=True, slots=True)
class InForce:
    """What a tick had to keep to. Without options on record, everything is allowed."""

    target: Target | None
    """None for a run without a target."""
    bounds: Bounds = field(default_factory=lambda: Bounds(1, _ANY))
    floors: tuple[Floor, ...] = ()
    per_executor: int = 1
    dry_run: bool = False

    def whole(self, cores: int) -> int:
        """So many cores in whole executors, because Spark grants nothing smaller."""
        return -(-cores // self.per_executor) * self.per_executor

    def most(self, share: int | None) -> int:
        """The most cores that a tick could have, in whole executors."""
        most = self.bounds.within(share).most
        return max(most // self.per_executor, 1) * self.per_executor

    def least(self, record: Record) -> tuple[int, bool]:
        """The fewest cores that were allowed, and whether a floor of the schedule raised them."""
        tick = record.measurement
        held = raised(self.bounds, self.floors, tick.at_s, tick.grant_s or 0.0)
        by_schedule = held.least > self.bounds.least
        return self.whole(held.within(record.share).least), by_schedule


def settings_of(run: Sequence[Record]) -> list[InForce]:
    """The settings of each tick of one run; they may change while it runs."""
    found: list[InForce] = []
    assembly: Assembly | None = None
    for record in run:
        if record.assembly is not None:
            assembly = Assembly.of(record.assembly)
        found.append(_in_force(record, assembly))
    return found


def _in_force(record: Record, assembly: Assembly | None) -> InForce:
    target = None if record.target_s is None else Target(record.target_s)
    if assembly is None:
        return InForce(target)
    return InForce(
        None if target is None else Target(target.latency_s, assembly.target.percentile),
        assembly.bounds,
        assembly.limits.floors,
        assembly.cores_per_executor,
        assembly.limits.dry_run,
    )
