"""The queries of the contest: what they cost, and their loads, scaled to a machine of two cores.

Rates are a twentieth of the original's, and so is the number of persons and auctions for each hot
one, so that as many hot keys come in a second. Operators wait for every row, 60 % of the time where
events are picked and the rest where they are keyed. How long is chosen so that the highest load
needs ten to twelve tasks, on any machine: the hotter the keys of a query, the fewer core seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.apps.nexmark.events import AUCTION_PART, AUCTIONS, BIDS, OF_ROUND, PERSONS
from tidegate.apps.nexmark.hot_items import COUNT
from tidegate.apps.nexmark.hot_items import QUERY as Q5
from tidegate.apps.nexmark.local_items import JOIN, STATES
from tidegate.apps.nexmark.local_items import QUERY as Q3
from tidegate.apps.nexmark.query import Query
from tidegate.apps.nexmark.user_sessions import QUERY as Q11
from tidegate.apps.nexmark.user_sessions import SESSIONS
from tidegate.workload import patterns
from tidegate.workload.patterns import MINUTES, PATTERNS, Magnitudes, pattern
from tidegate.workload.profile import Profile

SCALE = 20.0
HOT_EVERY = 5
TARGET_S = 3.0
CORES = (2, 16)
MINUTE_S = 2.0
"""How long a minute of the original's takes."""
WARM_S = 20.0
"""Seconds at the start that are not judged, as in the other benchmarks."""
LOADS = tuple(PATTERNS)
SECONDS = MINUTES * MINUTE_S
_PICKING = 0.6
_SHARE = {PERSONS: 1 / OF_ROUND, AUCTIONS: AUCTION_PART / OF_ROUND, BIDS: 46 / OF_ROUND}
"""The share of the events that are of a kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contested:
    """A query, its load and its costs."""

    query: Query
    magnitudes: Magnitudes
    keyed: str
    """The operator that has the keyed half of the work."""
    keyed_rows: float
    """Its rows for each event."""
    busy: float
    """Core seconds of waiting in a second of the highest load."""

    @property
    def peak(self) -> float:
        """The highest load, in events per second."""
        return (self.magnitudes.mean + self.magnitudes.swing) / SCALE

    @property
    def kinds(self) -> Mapping[str, float]:
        """The kinds that it reads, each with its share of the events."""
        return {pick.kind: _SHARE[pick.kind] for pick in self.query.picks}

    @property
    def picking_s(self) -> float:
        """The wait for each event of its kinds."""
        return _PICKING * self.busy / (self.peak * sum(self.kinds.values()))

    @property
    def keyed_s(self) -> float:
        """The wait for each row of the keyed operator."""
        return (1.0 - _PICKING) * self.busy / (self.peak * self.keyed_rows)

    @property
    def stretched_s(self) -> dict[str, float]:
        """The same for all operators of the query; `hottest` has few rows."""
        return {name: self.keyed_s if name == self.keyed else 0.0 for name in self.query.operators}

    def load(self, name: str, seconds: float, minute_s: float, seed: int) -> Profile:
        """A load of the contest, or its beginning."""
        minutes = max(round(seconds / minute_s), 1)
        return pattern(
            name, self.magnitudes, peak=self.peak, minute_s=minute_s, minutes=minutes, seed=seed
        )


_LOCAL_AUCTIONS = 1 / 5  # of one category out of five
_LOCAL_PERSONS = len(STATES) / 6
QUERIES = {
    "q3": Contested(
        query=Q3,
        magnitudes=patterns.Q3,
        keyed=JOIN,
        keyed_rows=_SHARE[PERSONS] * _LOCAL_PERSONS + _SHARE[AUCTIONS] * _LOCAL_AUCTIONS,
        busy=5.0,
    ),
    # The original has no load for Q5; it reads bids and keeps windows, as Q11 does.
    "q5": Contested(
        query=Q5, magnitudes=patterns.Q11, keyed=COUNT, keyed_rows=_SHARE[BIDS], busy=6.0
    ),
    "q11": Contested(
        query=Q11, magnitudes=patterns.Q11, keyed=SESSIONS, keyed_rows=_SHARE[BIDS], busy=4.5
    ),
}

OURS, STATIC, DS2 = "latency", "static peak", "ds2"
POLICIES = {
    OURS: "latency",
    "flow": "flow",
    "drs": "drs",
    DS2: "ds2",
    "hpa": "threshold",
    "dynamic allocation": "spark-dynamic-allocation",
    STATIC: "static",
}
"""By the name that people know, the name by which `start` knows it."""
