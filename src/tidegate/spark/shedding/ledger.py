"""The ledger: how many rows were offered and kept since counting began, exact through crashes.

The totals after a batch are one small file, written before Spark commits the batch. A replay of
the batch starts from the totals before it, so no row is counted twice. A pipeline that was never
shed and has not asked for it has no ledger, and pays for none.
"""

from dataclasses import asdict, dataclass
from typing import Any

from tidegate.control.row_counts import ClassCount, SourceCount, added
from tidegate.spark.state.files import Durable

_KEPT = 8
Totals = dict[str, SourceCount]


@dataclass(frozen=True, slots=True)
class Ledger:
    """The counts of one segment's sources."""

    directory: Durable

    def begun(self) -> bool:
        """Whether an earlier batch is in it."""
        return bool(self.directory.names())

    def after(self, batch_id: int) -> Totals:
        """The totals after a batch; nothing when counting began later."""
        if batch_id < 0 or not self.directory.exists(_name(batch_id)):
            return {}
        document = self.directory.read_json(_name(batch_id))
        return {entry["name"]: _count(entry) for entry in document["sources"]}

    def newest(self) -> Totals:
        """The totals after the last batch that is in it."""
        names = self.directory.names()
        return self.after(int(names[-1].removesuffix(".json"))) if names else {}

    def enter(self, batch_id: int, before: Totals, counts: tuple[SourceCount, ...]) -> Totals:
        """Add a batch to the totals before it."""
        totals = dict(before)
        for count in counts:
            known = totals.get(count.name)
            totals[count.name] = count if known is None else added(known, count)
        self.directory.make()
        document = {"sources": [asdict(count) for count in totals.values()]}
        self.directory.write_json(_name(batch_id), document)
        if batch_id >= _KEPT:
            self.directory.remove(_name(batch_id - _KEPT))
        return totals


def _count(entry: dict[str, Any]) -> SourceCount:
    return SourceCount(
        name=entry["name"],
        offered=entry["offered"],
        kept=entry["kept"],
        classes=tuple(ClassCount(**part) for part in entry["classes"]),
        groups_offered=tuple(entry["groups_offered"]),
        groups_kept=tuple(entry["groups_kept"]),
    )


def _name(batch_id: int) -> str:
    return f"{batch_id:010d}.json"
