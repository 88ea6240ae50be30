"""The overload paper's engine (figure 1): a buffer, a shedder, and queries that take turns.

Rows of all queries arrive in one buffer. In each round the engine takes all rows from the buffer
and reads them (c_s per row), the shedder keeps a random share, and the queries process their rows
one query after the other (c_p per row). The latency of a result is its creation time minus the
oldest arrival that contributed; the oldest row of a round arrived when the previous round began.
The shedder decides at fixed intervals, from what the engine meters: it is not given the true costs.
"""

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tidegate.control.learning.smoothing import Alpha
from tidegate.control.shedding.shedder import Look, Shedder
from tidegate.errors import AskedWrongly
from tidegate.models.shedding.outlook import BatchOutlook
from tidegate.workload.profile import Profile

Vector = npt.NDArray[np.float64]

BUCKET_S = 0.01
ROW_S = 1e-5
_METER_FADING = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineWorld:
    """A simulated engine and its load."""

    profile: Profile
    """Rows per second for one query, from all of its sources."""
    queries: int
    seconds: float
    row_s: float = ROW_S
    """c_p: engine seconds to process a row."""
    gather_s: float = 2e-7
    """c_s: engine seconds to read a row, kept or shed."""
    fixed_s: float = 0.01
    """The fixed cost of a round."""
    interval_s: float = 0.25
    """The time between two decisions; 250 ms in the paper."""
    noise: float = 0.05
    """Relative standard deviation of a round's cost."""
    speed: float = 1.0
    """The share of the machine that these queries have."""
    seed: int = 1

    def __post_init__(self) -> None:
        if self.queries < 1 or min(self.row_s, self.interval_s, self.seconds, self.speed) <= 0.0:
            raise AskedWrongly(
                "a simulated engine needs at least one query, and a row_s, an interval_s, seconds"
                " and a speed above 0"
            )

    @property
    def working(self) -> float:
        """The share of a round's processing that precedes a result, averaged over the queries."""
        return (self.queries + 1.0) / (2.0 * self.queries)

    def capacity(self, rate: float, target_s: float) -> float:
        """The most rows per second that can be kept of this rate at this mean latency."""
        outlook = BatchOutlook(
            offered_rows=0.0,
            arrival_rate=rate,
            row_s=self.row_s / self.speed,
            gather_s=self.gather_s / self.speed,
            fixed_s=self.fixed_s / self.speed,
            waiting=1.0,
            working=self.working,
        )
        return min(outlook.steady_throughput(target_s), rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOutcome:
    """The result of a run, with one entry per round unless noted."""

    ended_s: Vector
    latency_s: Vector
    """Mean latency of the queries' results in the round."""
    offered: Vector
    kept: Vector
    decided_s: Vector
    """When each decision was made; one entry per decision."""
    keep: Vector
    """The share to keep; one entry per decision."""
    arrived: float
    """Rows that arrived in the whole run."""
    left: float
    """Rows in the buffer or in an unfinished round at the end."""

    def mean_latency_s(self, begin_s: float, end_s: float = math.inf) -> float:
        """Mean latency of results between two times, weighted by the rows of each round."""
        inside = (self.ended_s >= begin_s) & (self.ended_s < end_s)
        return float(np.average(self.latency_s[inside], weights=self.kept[inside]))

    def kept_rate(self, begin_s: float, end_s: float) -> float:
        """Rows kept per second between two times."""
        inside = (self.ended_s >= begin_s) & (self.ended_s < end_s)
        return float(self.kept[inside].sum()) / (end_s - begin_s)


@dataclass(slots=True)
class _Round:
    begin_s: float
    end_s: float
    offered: float
    kept: float
    latency_s: float
    gathering_s: float
    working_s: float


@dataclass(slots=True)
class _Meter:
    """c_s and c_p as measured by the engine's own clock, smoothed."""

    row: Alpha = field(default_factory=lambda: Alpha(_METER_FADING))
    gather: Alpha = field(default_factory=lambda: Alpha(_METER_FADING))
    row_s: float | None = None
    gather_s: float = 0.0
    fixed_s: float = 0.0

    def see(self, one: _Round) -> None:
        if one.kept > 0.0:
            self.row_s = self.row.update(one.working_s / one.kept)
        if one.offered > 0.0:
            self.gather_s = self.gather.update(one.gathering_s / one.offered)
        self.fixed_s = one.end_s - one.begin_s - one.gathering_s - one.working_s


def simulate_engine(world: EngineWorld, shedder: Shedder | None) -> EngineOutcome:
    """Simulate the engine; without a shedder all rows are kept."""
    return EngineSimulation(world).run(shedder)


class EngineSimulation:
    """The state of the simulated engine: arrivals, the running round, and the meter."""

    def __init__(self, world: EngineWorld) -> None:
        self._world = world
        self._random = np.random.default_rng(world.seed)
        grid = np.arange(round(world.seconds / BUCKET_S) + 1)
        grown = np.diff(world.profile.cumulative(grid * round(BUCKET_S * 1000))) * world.queries
        came = self._random.poisson(grown).astype(np.float64)
        self._edges_s: Vector = np.asarray(grid * BUCKET_S, np.float64)
        self._arrived: Vector = np.concatenate([[0.0], np.cumsum(came)])
        self._taken = 0.0
        self._began_s = 0.0
        """When the last round began; it took all older rows."""
        self._round: _Round | None = None
        self._keep = 1.0
        self._meter = _Meter()
        self._rounds: list[_Round] = []

    def run(self, shedder: Shedder | None) -> EngineOutcome:
        """Alternate between running rounds for an interval and asking the shedder."""
        world = self._world
        decided, keeps = [], []
        for number in range(1, int(world.seconds / world.interval_s + 1e-9) + 1):
            at_s = number * world.interval_s
            ended = self._advance(at_s)
            if shedder is not None:
                look = self._look(at_s, ended)
                self._keep = 1.0 if look is None else shedder.keep(look)
            decided.append(at_s)
            keeps.append(self._keep)
        waiting = float(self._arrived[-1]) - self._taken
        return EngineOutcome(
            ended_s=np.array([one.end_s for one in self._rounds]),
            latency_s=np.array([one.latency_s for one in self._rounds]),
            offered=np.array([one.offered for one in self._rounds]),
            kept=np.array([one.kept for one in self._rounds]),
            decided_s=np.array(decided),
            keep=np.array(keeps),
            arrived=float(self._arrived[-1]),
            left=waiting + (0.0 if self._round is None else self._round.offered),
        )

    def _arrived_by(self, at_s: float) -> float:
        return float(np.interp(at_s, self._edges_s, self._arrived))

    def _advance(self, until_s: float) -> list[_Round]:
        """Run rounds one after the other up to a time; return those that ended."""
        ended: list[_Round] = []
        while True:
            if self._round is None:
                free_s = self._rounds[-1].end_s if self._rounds else 0.0
                begin_s = self._next_s(free_s)
                if begin_s > until_s:
                    return ended
                self._round = self._begin(begin_s)
            if self._round.end_s > until_s:
                return ended
            self._meter.see(self._round)
            self._rounds.append(self._round)
            ended.append(self._round)
            self._round = None

    def _next_s(self, free_s: float) -> float:
        """The first time from `free_s` on at which the buffer has a row."""
        if self._arrived_by(free_s) - self._taken >= 1.0:
            return free_s
        later = int(np.searchsorted(self._arrived, self._taken + 1.0, side="left"))
        return float(self._edges_s[later]) if later < len(self._edges_s) else math.inf

    def _begin(self, begin_s: float) -> _Round:
        world = self._world
        offered = math.floor(self._arrived_by(begin_s) - self._taken)
        kept = float(self._random.binomial(offered, self._keep)) if self._keep < 1.0 else offered
        noise = math.exp(self._random.normal(0.0, world.noise)) if world.noise else 1.0
        gathering_s = offered * world.gather_s / world.speed
        working_s = kept * world.row_s * noise / world.speed
        before_s = world.fixed_s / world.speed + gathering_s
        # The oldest row arrived when the previous round began, or at the end of a lull.
        first = float(np.interp(self._taken + 1.0, self._arrived, self._edges_s))
        oldest_s = max(self._began_s, min(first, begin_s))
        self._taken += offered
        self._began_s = begin_s
        return _Round(
            begin_s=begin_s,
            end_s=begin_s + before_s + working_s,
            offered=float(offered),
            kept=float(kept),
            latency_s=begin_s - oldest_s + before_s + world.working * working_s,
            gathering_s=gathering_s,
            working_s=working_s,
        )

    def _look(self, at_s: float, ended: list[_Round]) -> Look | None:
        """The next round as far as the engine can predict it; None before the first has ended."""
        meter = self._meter
        if meter.row_s is None:
            return None
        world = self._world
        rate = (self._arrived_by(at_s) - self._arrived_by(at_s - world.interval_s)) / (
            world.interval_s
        )
        waits = self._arrived_by(at_s) - self._taken
        running = self._round
        begins_s = at_s
        if running is not None:
            costs_s = running.offered * meter.gather_s + running.kept * meter.row_s
            begins_s = max(at_s, running.begin_s + meter.fixed_s + costs_s)
        outlook = BatchOutlook(
            offered_rows=max(waits, 0.0) + rate * (begins_s - at_s),
            arrival_rate=rate,
            row_s=meter.row_s,
            gather_s=meter.gather_s,
            fixed_s=max(meter.fixed_s, 0.0),
            waiting=1.0,
            working=world.working,
            horizon_s=max(at_s + world.interval_s - begins_s, 0.0),
        )
        latency_s, delay_s = None, at_s - self._rounds[-1].begin_s
        if ended:
            kept = np.array([max(one.kept, 1e-9) for one in ended])
            latency_s = float(np.average([one.latency_s for one in ended], weights=kept))
        return Look(at_s=at_s, outlook=outlook, latency_s=latency_s, delay_s=delay_s)
