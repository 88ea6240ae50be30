"""The default policy: load and capacity uncertainty together, at a price that is calibrated online.

Each cycle it weighs, for every number of machines, what they cost against what may be late:

    S m  +  U max(0, m - now)  +  W shortfall(m)  +  price x base x late(m)

S m are the cycle's machine-minutes, U per machine added is what a start costs (it is paid for and
does not work yet: the paper's future work), the shortfall is work that is put off and must be
caught up by machines later, and late(m) the expected minutes with a load above capacity. Load comes
as an `Outlook` (analogues, not a normal distribution), capacity as the quantiles of the Bayesian
model; `price` is the conformal part (see `price`). Backlog is caught up within `catch_up_s`.

Between two plans it only adds: when a minute's load exceeded what is up, it asks at once for what
such surprises needed before. With `react` off it keeps to the paper's cycle strictly.
"""

import math
from collections import deque
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement
from tidegate.control.policies.cycle import Ahead, Bounds, Cycle
from tidegate.control.policies.price import PRICES, Price
from tidegate.forecast.analogues import THRESHOLDS, Outlook
from tidegate.models.mst import BayesianCapacity

Vector = NDArray[np.float64]

QUANTILES = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9)
"""Capacity is integrated over these quantiles ..."""
QUANTILE_WEIGHTS: Vector = np.array([0.05, 0.15, 0.2, 0.2, 0.2, 0.2])
"""... with these weights."""
LEAST_UTILISATION = 0.3
"""Below this a busy share says too little about the capacity."""


class LoadOutlook(Protocol):
    """What the policy needs to know of the coming load."""

    def observe(self, load: float, at_s: float) -> None:
        """One more minute."""
        ...

    def outlook(self) -> Outlook:
        """The window that a start asked for now will serve."""
        ...


@dataclass(frozen=True, slots=True)
class Tuning:
    """The few numbers that were chosen, not derived."""

    shortfall_weight: float = 1.5
    """W: what work put off costs, against doing it now (1: the same)."""
    fairness: float = 0.5
    """Base of the price: 0 is the mean machines in use, so that busy hours are given up first;
    1 is what the present load needs, so that a late minute is worth as much at any hour."""
    surprise_quantile: float = 0.75
    """How much of past surprises' growth a reaction covers."""
    catch_up_s: float = 600.0
    """Time within which backlog is to be gone."""


class TidegatePolicy:
    """See the module's text. Called once a minute; deterministic."""

    def __init__(
        self,
        outlook: LoadOutlook,
        capacity: BayesianCapacity,
        rho: float,
        *,
        bounds: Bounds,
        cycle: Cycle | None = None,
        react: bool = True,
        tuning: Tuning | None = None,
    ) -> None:
        self._outlook = outlook
        self._capacity = capacity
        self._bounds = bounds
        self._cycle = cycle or Cycle()
        self._ahead = Ahead(self._cycle)
        self._react = react
        self._tuning = tuning or Tuning()
        self._price = Price(rho, self._cycle.minutes)
        self._counts = np.arange(bounds.least, bounds.most + 1)
        self._mean_need = 0.0
        self._plans = 0
        self._next_thresholds: Vector | None = None
        self._thresholds: Vector | None = None
        self._loads: list[float] = []
        self._late = 0
        self._learned: set[int] = set()
        self._surprise: tuple[float, float, int] | None = None
        self._growth: deque[float] = deque([1.1, 1.25], maxlen=20)

    @property
    def name(self) -> str:
        """`tidegate`, or `tidegate-cycle` when it keeps to the paper's cycle."""
        return "tidegate" if self._react else "tidegate-cycle"

    def decide(self, measurement: Measurement) -> Decision:
        """Learn every minute, plan once a cycle, react in between."""
        self._outlook.observe(measurement.arrival_rate, measurement.at_s)
        self._learn(measurement)
        late = measurement.saturated and measurement.processed_rate <= measurement.arrival_rate
        self._loads.append(measurement.arrival_rate)
        self._late += late
        self._follow_surprise(measurement)
        minute = self._cycle.minute_of(measurement)
        if minute == 0:
            self._settle()
            at_least = self._needed(measurement.arrival_rate) if late else 0
            return self._ahead.begin(measurement, at_least)
        if minute == self._ahead.plans_at:
            return self._plan(measurement)
        if late and self._react and minute < self._ahead.plans_at:
            return self._answer(measurement)
        return hold("within the cycle")

    def _plan(self, measurement: Measurement) -> Decision:
        coming = self._outlook.outlook()
        expected = coming.mean_load()
        costs, late, thresholds = self._weigh(coming, measurement.cores_asked)
        choices = np.argmin(costs[None, :] + self._base * PRICES[:, None] * late[None, :], axis=1)
        place = self._price.choose(late[choices])
        chosen = int(choices[place])
        self._next_thresholds = thresholds[choices]
        machines = int(self._counts[chosen])
        caught_up = self._catch_up(expected, measurement.backlog_rows)
        if caught_up > machines:
            reason = f"{measurement.backlog_rows:.4g} waiting, to be caught up"
            return self._ahead.plan(caught_up, reason, measurement)
        gap = "; the collector is silent, so the load before it holds" if coming.gap else ""
        reason = f"a load of {expected:.4g} expected, {late[chosen]:.2g} minutes late{gap}"
        return self._ahead.plan(machines, reason, measurement)

    def _weigh(self, coming: Outlook, now: int) -> tuple[Vector, Vector, Vector]:
        """For each number of machines: cost without the price, late minutes, capacities."""
        counts = self._counts
        capacity = np.stack([self._capacity.quantile(counts, q) for q in QUANTILES], axis=1)
        level = max(coming.level, 1e-300)
        ratios = np.log(np.maximum(capacity, 1e-300) / level)
        curve = coming.minutes_late if self._react else coming.minutes_above
        late = np.interp(ratios, THRESHOLDS, curve, left=curve[0]) @ QUANTILE_WEIGHTS
        growth = np.diff(np.exp(THRESHOLDS))
        # load-minutes above each threshold: the area under the exceedance curve beyond it
        beyond = np.append(np.cumsum((coming.minutes_above[:-1] * growth)[::-1])[::-1], 0.0)
        put_off = level * (np.interp(ratios, THRESHOLDS, beyond) @ QUANTILE_WEIGHTS)
        middle = capacity[:, QUANTILES.index(0.5)]
        enough = min(int(np.searchsorted(middle, level)), len(counts) - 1)
        need = float(counts[enough])
        work = put_off * need / max(float(middle[enough]), 1e-300)
        self._plans += 1
        self._mean_need += (need - self._mean_need) / min(self._plans, 300)
        fairness = self._tuning.fairness
        self._base = need**fairness * self._mean_need ** (1 - fairness)
        start = self._cycle.startup_minutes * np.maximum(counts - now, 0)
        costs = self._cycle.minutes * counts + start + self._tuning.shortfall_weight * work
        return np.asarray(costs, dtype=np.float64), late, capacity

    def _settle(self) -> None:
        """A cycle is over: what would each price have had late, and what was late?"""
        loads = np.array(self._loads[-self._cycle.minutes :])
        if self._thresholds is not None and len(loads) == self._cycle.minutes:
            reaction = self._cycle.startup_minutes if self._react else self._cycle.minutes
            late = late_minutes(loads, self._thresholds, reaction) @ QUANTILE_WEIGHTS
            self._price.replay(late)
            self._price.settle(self._late)
        self._thresholds = self._next_thresholds
        self._next_thresholds = None
        self._loads.clear()
        self._late = 0

    def _answer(self, measurement: Measurement) -> Decision:
        """More load than machines: ask for what such surprises needed before."""
        load = measurement.arrival_rate
        growth = float(np.quantile(np.array(self._growth), self._tuning.surprise_quantile))
        if self._surprise is None:
            self._surprise = (load, load, 0)
        first = self._surprise[0]
        machines = self._needed(max(load * 1.05, first * growth))
        if machines <= measurement.cores_asked:
            return hold("what the surprise needs is starting")
        return Decision(cores=machines, reason=f"a load of {load:.4g} is more than is up")

    def _follow_surprise(self, measurement: Measurement) -> None:
        """Ten minutes after a surprise it is known how far it grew."""
        if self._surprise is None:
            return
        first, largest, minutes = self._surprise
        largest = max(largest, measurement.arrival_rate)
        if minutes + 1 >= self._cycle.minutes:
            self._growth.append(largest / first)
            self._surprise = None
        else:
            self._surprise = (first, largest, minutes + 1)

    def _needed(self, load: float) -> int:
        """Fewest machines that sustain a load at four chances in five."""
        enough = self._capacity.quantile(self._counts, 0.2) > load
        return int(self._counts[int(np.argmax(enough))]) if enough.any() else self._bounds.most

    def _catch_up(self, load: float, backlog_rows: float) -> int:
        if backlog_rows <= 0.05 * load * 60.0:
            return 0
        target = load + backlog_rows / self._tuning.catch_up_s
        enough = self._capacity.mean(self._counts) > target
        return int(self._counts[int(np.argmax(enough))]) if enough.any() else self._bounds.most

    def _learn(self, measurement: Measurement) -> None:
        """One capacity sample a cycle and machine count, from saturation or the busy share."""
        if self._cycle.minute_of(measurement) == 1:
            self._learned.clear()
        machines = measurement.cores_granted
        if machines in self._learned or measurement.processed_rate <= 0:
            return
        if measurement.saturated:
            sample = measurement.processed_rate
        elif measurement.cores_busy is not None:
            utilisation = measurement.cores_busy / machines
            if not LEAST_UTILISATION <= utilisation < 1.0:
                return
            sample = measurement.processed_rate / utilisation
        else:
            return
        if math.isfinite(sample) and sample > 0:
            self._capacity.observe(machines, sample)
            self._learned.add(machines)


def late_minutes(loads: Vector, capacities: Vector, reaction: int) -> Vector:
    """Minutes of `loads` at or above each capacity, up to `reaction` after the first of them."""
    over = loads >= capacities[..., None]
    first = np.argmax(over, axis=-1)
    place = np.arange(len(loads))
    return np.asarray((over & (place <= first[..., None] + reaction)).sum(axis=-1), dtype=float)
