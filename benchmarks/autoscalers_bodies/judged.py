"""Who wins a load, and which aims a contest meets.

Ours wins a load if no policy has more seconds within the target, and none of those that come within
two points of it is cheaper. A query is won with five of its six loads, and with no more changes
than DS2 makes. Both aims need every load and every policy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.autoscalers_bodies.contest import DS2, LOADS, OURS, POLICIES
from benchmarks.autoscalers_bodies.kept import Asked, Result

from tidegate.benching import Aim, at_least, at_most

CLOSE = 0.02
"""Two percentage points."""
LOADS_TO_WIN = len(LOADS) - 1
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Cell:
    """All runs of one query under one load."""

    query: str
    load: str
    by_policy: Mapping[str, Result]

    @property
    def oracle_core_seconds(self) -> float:
        """The oracle's: each run has its own costs, so it is the median of theirs."""
        return median(one.oracle_core_seconds for one in self.by_policy.values())

    def of_oracle(self, policy: str) -> float:
        """Core-seconds over the oracle's."""
        return self.by_policy[policy].core_seconds / max(self.oracle_core_seconds, 1e-9)

    @property
    def is_first(self) -> bool:
        """Whether nobody has more seconds within the target than ours."""
        most = max(one.within for one in self.by_policy.values())
        return self._ours.within >= most - _SAME

    @property
    def is_cheapest(self) -> bool:
        """Whether ours is the cheapest of those with no more than two points less."""
        enough = self._ours.within - CLOSE - _SAME
        least = min(one.core_seconds for one in self.by_policy.values() if one.within >= enough)
        return self._ours.core_seconds <= least + _SAME

    @property
    def is_won(self) -> bool:
        """Whether ours is both."""
        return self.is_first and self.is_cheapest

    @property
    def words(self) -> str:
        """How it ended, in a line."""
        first = max(self.by_policy.values(), key=lambda one: (one.within, -one.core_seconds))
        enough = first.within - CLOSE - _SAME
        close = [one for one in self.by_policy.values() if one.within >= enough]
        cheapest = min(close, key=lambda one: one.core_seconds)
        ours = self._ours
        return (
            f"{self.query}, {self.load}: ours {_share(ours)} at {self.of_oracle(OURS):.2f} times"
            f" the oracle's, {'won' if self.is_won else 'not won'}; first {_name(first)} with"
            f" {_share(first)}, the cheapest within two points {_name(cheapest)} at"
            f" {self.of_oracle(cheapest.asked.policy):.2f}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """For the table and for JSON: one row for each policy."""
        return [
            {
                "query": self.query,
                "load": self.load,
                "policy": name,
                "within_target": round(one.within, 4),
                "p95_ms": one.p95_ms,
                "core_seconds": round(one.core_seconds, 1),
                "of_oracle": round(self.of_oracle(name), 3),
                "changes": one.changes,
                "verified": one.verified,
            }
            for name, one in self.by_policy.items()
        ]

    @property
    def _ours(self) -> Result:
        return self.by_policy[OURS]


def cells(asked: Sequence[Asked], kept: Mapping[Asked, Result]) -> list[Cell]:
    """The results of what was asked for, by query and load; those that are there."""
    found: dict[tuple[str, str], dict[str, Result]] = {}
    for one in asked:
        if one in kept:
            found.setdefault((one.query, one.load), {})[one.policy] = kept[one]
    return [Cell(query, load, results) for (query, load), results in found.items()]


def aims(queries: Sequence[str], found: Sequence[Cell]) -> list[Aim]:
    """Two for each query, and the right answers of all runs."""
    made: list[Aim] = []
    for query in queries:
        whole = [
            cell
            for cell in found
            if cell.query == query and set(cell.by_policy) == set(POLICIES) and cell.load in LOADS
        ]
        is_whole = {cell.load for cell in whole} == set(LOADS)
        won = sum(cell.is_won for cell in whole) if is_whole else None
        made += [
            at_least(
                f"{query}: loads on which ours is first, and the cheapest within two points",
                won,
                LOADS_TO_WIN,
            ),
            at_most(f"{query}: changes over ds2's", _changes(whole) if is_whole else None, 1.0),
        ]
    told = [one.verified for cell in found for one in cell.by_policy.values()]
    known = [one for one in told if one is not None]
    if known:
        made.append(Aim("runs with the right answers", sum(known), f"= {len(known)}", all(known)))
    return made


def _changes(whole: Sequence[Cell]) -> float:
    ours, ds2 = (sum(cell.by_policy[name].changes for cell in whole) for name in (OURS, DS2))
    return ours / max(ds2, 1)


def _share(one: Result) -> str:
    return f"{100.0 * one.within:.1f} %"


def _name(one: Result) -> str:
    return one.asked.policy
