"""The priced policy: load and capacity uncertainty together, at a price calibrated online.

Each minute it finds the number of machines m with the lowest cost for the minute that machines
requested now will serve:

    S m  +  U max(0, m - planned)  +  W shortfall(m)  +  price x base x late(m)

S m is the machine-minutes (S = 1). U per added machine is the cost of a start, which is paid for
before the machine works (the MST paper's future work). The shortfall is work that is deferred and
must be done by machines later. late(m) is the expected number of minutes with a load at or above
capacity. The load is a `WindowOutlook` (from analogues, not a normal distribution), the capacity
comes as quantiles of the Bayesian model, and the price is conformal (see `price`). The policy
always requests enough machines for the likely load, and for the backlog within `catch_up_s`.

With a cycle of ten minutes the same policy follows the paper's discipline: one number of machines
for each S minutes, planned U before (`priced-capacity-cycle`).
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tidegate.control.bounds import Bounds
from tidegate.control.capacity.cycle import Cycle
from tidegate.control.capacity.price import PRICES, Price
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement
from tidegate.control.names import PRICED, PRICED_BY_CYCLE
from tidegate.forecast.analogues import THRESHOLDS, WindowOutlook
from tidegate.models.capacity.bayes import BayesianCapacity
from tidegate.units import format_share

Vector = NDArray[np.float64]

QUANTILES = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9)
"""The quantiles over which capacity is integrated."""
QUANTILE_WEIGHTS: Vector = np.array([0.05, 0.15, 0.2, 0.2, 0.2, 0.2])
"""The weights of these quantiles."""
MEAN_NEED_MINUTES = 3000.0
"""The averaging time of the machines in use."""
SAMPLE_MINUTES = 10
"""Each machine count gives at most one capacity sample in this time: neighbouring minutes add
nothing."""
IGNORED_BACKLOG_S = 3.0
"""A backlog of less than this many seconds of load is left to the slack that exists anyway."""
LEAST_UTILISATION = 0.3
"""Below this utilisation a busy share says too little about the capacity."""


class LoadOutlook(Protocol):
    """A forecaster of the load's distribution, as the policy needs it."""

    def observe(self, load: float, at_s: float) -> None:
        """Learn the load of one minute."""
        ...

    def outlook(self) -> WindowOutlook:
        """The load of the window that machines requested now will serve."""
        ...


@dataclass(frozen=True, slots=True)
class Tuning:
    """The few parameters that were chosen rather than derived."""

    shortfall_weight: float = 1.5
    """W: the cost of deferred work, relative to doing it now."""
    fairness: float = 0.5
    """The base of the price. With 0 it is the mean number of machines in use, so that busy hours
    are given up first; with 1 it is what the present load needs, so that a late minute has the same
    worth at any hour."""
    catch_up_s: float = 600.0
    """The time within which a backlog is worked off."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """Machines for the minutes from `begin` up to, but not including, `end`."""

    begin: int
    end: int
    machines: int
    choices: NDArray[np.int64]
    """What each price would have chosen, as an index into the machine counts."""
    capacities: Vector
    """The estimated capacity: one row per number of machines, one column per quantile."""
    reason: str


class PricedCapacity:
    """The priced policy (see the module's docstring); it is called once a minute."""

    def __init__(
        self,
        outlook: LoadOutlook,
        capacity: BayesianCapacity,
        rho: float,
        *,
        cycle: Cycle | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        self._outlook = outlook
        self._capacity = capacity
        self._allowed: Bounds | None = None
        self._cycle = cycle or Cycle(minutes=1)
        self._tuning = tuning or Tuning()
        self._price = Price(rho, self._cycle.minutes)
        self._counts = np.arange(1, 2)
        self._mean_need = 0.0
        self._weighed = 0
        self._plans: list[_Plan] = []
        self._replayed_up = np.zeros(len(PRICES), dtype=np.int64)
        self._loads: list[float] = []
        self._late = 0
        self._learned: set[int] = set()

    @property
    def name(self) -> str:
        """`priced-capacity`, or `priced-capacity-cycle` when it keeps to a cycle."""
        return PRICED if self._cycle.minutes == 1 else PRICED_BY_CYCLE

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        """Learn every minute, plan U before each cycle, and request what the plans need."""
        now = round(measurement.at_s / 60.0)
        self._outlook.observe(measurement.arrival_rate, measurement.at_s)
        self._learn(measurement)
        if not self._capacity.known:
            return hold("no minute has shown yet how much the machines can process")
        self._keep_to(constraints.allowed)
        self._settle(measurement, now)
        begin = now + self._cycle.startup_minutes
        if begin % self._cycle.minutes == 0:
            self._plans.append(self._plan(measurement, begin))
        if not self._plans:
            return hold("no plan was made yet")
        # Machines started now are ready at `begin`; released ones leave now.
        plan = max(self._plans, key=lambda plan: plan.machines)
        if self._plans[0].begin > now and plan.machines < measurement.cores_asked:
            return hold("the first plan begins later")
        if plan.machines == measurement.cores_asked:
            return hold(plan.reason)
        return Decision(cores=plan.machines, reason=plan.reason)

    def _plan(self, measurement: Measurement, begin: int) -> _Plan:
        coming = self._outlook.outlook()
        expected = coming.median_load()
        planned = max((plan.machines for plan in self._plans), default=measurement.cores_asked)
        choices, late = self._weigh(coming, planned)
        place = self._price.choose(late)
        chosen = int(choices[place])
        machines = int(self._counts[chosen])
        gap = "; there are no data now, so the last known load is used" if coming.gap else ""
        share = format_share(late[place] / self._cycle.minutes)
        reason = f"a load of {expected:.3g} is expected, with too little {share} of the time{gap}"
        fewest = self._sustain(expected, measurement.backlog_rows)
        if fewest > machines:
            machines = fewest
            reason = f"a load of {expected:.3g} and a backlog of {measurement.backlog_rows:.3g}"
        end = begin + self._cycle.minutes
        return _Plan(begin, end, machines, choices, self._capacities, reason)

    def _weigh(self, coming: WindowOutlook, planned: int) -> tuple[NDArray[np.int64], Vector]:
        """What each price would choose (an index into the counts), and its late minutes."""
        level = max(coming.level, 1e-300)
        middle = self._capacities[:, QUANTILES.index(0.5)]
        enough = min(int(np.searchsorted(middle, level)), len(self._counts) - 1)
        need = float(self._counts[enough])
        self._weighed += 1
        weight = max(1.0 / self._weighed, self._cycle.minutes / MEAN_NEED_MINUTES)
        self._mean_need += (need - self._mean_need) * weight
        fairness = self._tuning.fairness
        base = need**fairness * self._mean_need ** (1 - fairness)
        machines_per_load = need / max(float(middle[enough]), 1e-300)
        choices, late = _weigh(
            self._log_capacities - math.log(level),
            QUANTILE_WEIGHTS,
            coming.minutes_above,
            THRESHOLDS,
            self._counts,
            planned,
            float(self._cycle.minutes),
            float(self._cycle.startup_minutes),
            self._tuning.shortfall_weight * level * machines_per_load,
            base * PRICES,
        )
        return choices, late

    def _settle(self, measurement: Measurement, now: int) -> None:
        """After a minute: compare the minutes late at each price with those actually late."""
        if not self._plans or self._plans[0].begin >= now:
            return
        late = measurement.saturated and measurement.processed_rate <= measurement.arrival_rate
        self._loads.append(measurement.arrival_rate)
        self._late += late
        plan = self._plans[0]
        if plan.end > now:
            return
        # Machines that a later plan needs are not released in between: they serve this one, too.
        up = plan.choices
        if len(self._plans) > 1:
            later = np.max([other.choices for other in self._plans[1:]], axis=0)
            up = np.maximum(up, np.minimum(self._replayed_up, later))
        self._replayed_up = up
        loads = np.array(self._loads)
        over = (loads >= plan.capacities[up][..., None]).sum(axis=-1) @ QUANTILE_WEIGHTS
        self._price.settle(over, self._late)
        self._plans.pop(0)
        self._loads.clear()
        self._late = 0

    def _sustain(self, load: float, backlog_rows: float) -> int:
        """The fewest machines for the likely load (eq. 4) and the backlog within `catch_up_s`.

        Without this minimum, a load far beyond all machines would get none: whatever was added, all
        minutes would be late.
        """
        behind = backlog_rows > IGNORED_BACKLOG_S * load
        target = load + (backlog_rows / self._tuning.catch_up_s if behind else 0.0)
        enough = self._mean_capacity > target
        return int(self._counts[int(np.argmax(enough))]) if enough.any() else int(self._counts[-1])

    def _learn(self, measurement: Measurement) -> None:
        """Take a capacity sample, from saturation or the busy share, as `SAMPLE_MINUTES` allows."""
        if round(measurement.at_s / 60.0) % SAMPLE_MINUTES == 1:
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
            if self._allowed is not None:
                self._refresh()

    def _keep_to(self, allowed: Bounds) -> None:
        """Weigh the numbers of machines that are allowed.

        Open plans hold places in the old numbers, so a change of bounds drops them.
        """
        if allowed == self._allowed:
            return
        self._allowed = allowed
        self._counts = np.arange(allowed.least, allowed.most + 1)
        self._plans.clear()
        self._loads.clear()
        self._late = 0
        self._replayed_up = np.zeros(len(PRICES), dtype=np.int64)
        self._refresh()

    def _refresh(self) -> None:
        """After a sample, compute capacities at `QUANTILES`, one row per number of machines."""
        columns = [self._capacity.quantile(self._counts, q) for q in QUANTILES]
        self._mean_capacity = self._capacity.mean(self._counts)
        self._capacities = np.maximum(np.stack(columns, axis=1), 1e-300)
        self._log_capacities = np.log(self._capacities)


@njit(cache=True)
def _weigh(  # type: ignore[no-untyped-def]
    ratios,
    weights,
    above,
    thresholds,
    counts,
    planned,
    cycle_minutes,
    startup_minutes,
    shortfall_price,
    late_prices,
):  # pragma: no cover - compiled
    """The cheapest number of machines at each price of a late minute, and its late minutes."""
    size = len(thresholds)
    first = thresholds[0]
    step = thresholds[1] - thresholds[0]
    # load-minutes above each threshold: the area under the exceedance curve beyond it
    beyond = np.zeros(size)
    for b in range(size - 2, -1, -1):
        growth = math.exp(thresholds[b + 1]) - math.exp(thresholds[b])
        beyond[b] = beyond[b + 1] + above[b] * growth
    best = np.full(len(late_prices), np.inf)
    choices = np.zeros(len(late_prices), dtype=np.int64)
    late_out = np.zeros(len(late_prices))
    for m in range(len(counts)):
        late = 0.0
        put_off = 0.0
        for q in range(len(weights)):
            place = min(max((ratios[m, q] - first) / step, 0.0), size - 1.001)
            b = int(place)
            part = place - b
            late += weights[q] * (above[b] * (1 - part) + above[b + 1] * part)
            put_off += weights[q] * (beyond[b] * (1 - part) + beyond[b + 1] * part)
        cost = cycle_minutes * counts[m] + shortfall_price * put_off
        cost += startup_minutes * max(counts[m] - planned, 0)
        for p in range(len(late_prices)):
            total = cost + late_prices[p] * late
            if total < best[p]:
                best[p] = total
                choices[p] = m
                late_out[p] = late
    return choices, late_out
