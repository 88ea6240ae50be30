"""The MST paper's evaluation (V-A): steps of a minute, and machines that take time to start.

Released machines leave at once; new ones start working `startup_minutes` (U) after the request. A
capacity is drawn once per cycle of S minutes, as the paper compares ten loads with a single MST
value. Load that was not processed stays as backlog. The policy is called once a minute with the
same `Measurement` as on Spark, and may request machines at any minute: only the paper's policies
keep to cycles, not the cluster.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.measurement import Measurement
from tidegate.control.policy import Policy
from tidegate.errors import AskedWrongly
from tidegate.sim.capacity.applications import CapacityCase

Vector = NDArray[np.float64]
Machines = NDArray[np.int64]

CYCLE_MINUTES = 10
"""S of the paper."""
STARTUP_MINUTES = 2
"""U of the paper."""
BUSY_NOISE = 0.05
"""Relative error of the measured busy cores: a measured utilisation is never exact."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """One application under one trace, with one draw of its noise, the same for every policy."""

    application: CapacityCase
    load: Vector
    """lambda_t in MB/s, one value per minute."""
    mean_capacity: Vector
    """mu_m for m = 1 to `max_machines`."""
    capacity_noise: Vector
    """One factor per cycle: tau = mu_m times this."""
    busy_noise: Vector
    """One factor per minute on the measured busy cores."""
    training: tuple[tuple[int, float], ...]
    """The samples of a calibration before the start."""
    seed: int

    @property
    def max_machines(self) -> int:
        """The size of the cluster."""
        return len(self.mean_capacity)

    def capacity(self, machines: Machines) -> Vector:
        """tau_tru at each minute with these machines (one count per minute)."""
        cycles = np.arange(len(machines)) // CYCLE_MINUTES
        return np.asarray(self.mean_capacity[machines - 1] * self.capacity_noise[cycles])

    def needed(self) -> Machines:
        """Ground truth (V-A4): the fewest machines at each minute whose tau_tru exceeds lambda_t.

        Where no number is enough it is `max_machines`.
        """
        cycles = np.arange(len(self.load)) // CYCLE_MINUTES
        wanted = self.load / self.capacity_noise[cycles]
        # The mean curve never falls, so a binary search finds the first count that exceeds it.
        first = np.searchsorted(self.mean_capacity, wanted, side="right") + 1
        return np.minimum(first, self.max_machines).astype(np.int64)

    def needed_per_cycle(self) -> Machines:
        """The fewest machines at each minute for a schedule that keeps them for whole cycles."""
        needed = self.needed()
        pad = -len(needed) % CYCLE_MINUTES
        cycles = np.pad(needed, (0, pad), mode="edge").reshape(-1, CYCLE_MINUTES).max(axis=1)
        return np.repeat(cycles, CYCLE_MINUTES)[: len(needed)]


def scale_to_peak(trace: Vector, application: CapacityCase) -> Vector:
    """Scale the trace to MB/s: its largest minute becomes the application's peak of table II.

    The curves sustain 1.04 times the peak with about 100 of 128 machines (14 of 16 for the
    flights), so the whole cluster sustains the largest load even with noise.
    """
    peak = float(trace.max())
    if peak <= 0:
        raise AskedWrongly(
            "Every count of the trace is 0, so it cannot be scaled: give a trace with load."
        )
    return np.asarray(trace * (application.peak / peak))


def cluster(trace: Vector, application: CapacityCase, seed: int) -> Cluster:
    """Set up this application under this trace, with the noise of this seed."""
    rng = np.random.default_rng([seed, *application.name.encode()])
    training = tuple(application.samples(rng))
    cycles = -(-len(trace) // CYCLE_MINUTES)
    noise = 1.0 + application.noise * np.clip(rng.standard_normal(cycles), -3.5, 3.5)
    busy = 1.0 + BUSY_NOISE * np.clip(rng.standard_normal(len(trace)), -3.5, 3.5)
    load = scale_to_peak(trace, application)
    return Cluster(application, load, application.mean(), noise, busy, training, seed)


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """The course of a run, with one entry per minute."""

    machines: Machines | Vector
    """Machines that have started: eq. 23 counts these. On a pipeline, their mean in each minute."""
    capacity: Vector
    backlog: Vector
    """Backlog in MB at the end of each minute."""
    satisfied: NDArray[np.bool_] | Vector
    """I(tau_tru(m_t) > lambda_t) of eq. 22. On a pipeline, the share of each minute."""
    scalings: int
    """How often the requested number of machines changed."""
    started: int
    """The total number of machines started."""
    within_target: float | None = None
    """On a pipeline: the share of the time within the latency target."""

    @property
    def qos(self) -> float:
        """QoS satisfaction rate of eq. 22, from 0 to 1."""
        return float(self.satisfied.mean())


class _Fleet:
    """The machines that are up, those that are starting, and the number that was requested."""

    def __init__(self, up: int, startup_minutes: int) -> None:
        self.up = self.asked = up
        self.scalings = self.started = 0
        self._startup_minutes = startup_minutes
        self._starting: list[tuple[int, int]] = []
        """The minute from which machines are up, and how many."""

    def arrive(self, minute: int) -> None:
        """Machines whose start-up time is over are up from this minute on."""
        while self._starting and self._starting[0][0] <= minute:
            self.up += self._starting.pop(0)[1]

    def request(self, target: int, minute: int) -> None:
        """Start or release machines; those that are still starting are released first."""
        self.scalings += target != self.asked
        if target > self.asked:
            self._starting.append((minute + 1 + self._startup_minutes, target - self.asked))
            self.started += target - self.asked
        else:
            leaving = self.asked - target
            while leaving and self._starting:
                ready, count = self._starting.pop()
                if count > leaving:
                    self._starting.append((ready, count - leaving))
                leaving -= min(count, leaving)
            self.up -= leaving
        self.asked = target


def simulate(
    policy: Policy, body: Cluster, *, startup_minutes: int = STARTUP_MINUTES
) -> ClusterRun:
    """For every minute of the trace in turn: process the load, measure, decide, act."""
    load = body.load
    mean = body.mean_capacity.tolist()
    noise = body.capacity_noise.tolist()
    busy_noise = body.busy_noise.tolist()
    constraints = Constraints(Bounds(1, body.max_machines))
    # The pipeline was running before the trace: it starts with what the first minute needs.
    fleet = _Fleet(int(body.needed()[0]), startup_minutes)
    machines = np.empty(len(load), dtype=np.int64)
    backlog_at = np.empty(len(load))
    backlog = 0.0
    for minute, rate in enumerate(load.tolist()):
        fleet.arrive(minute)
        up = fleet.up
        tau = mean[up - 1] * noise[minute // CYCLE_MINUTES]
        offered = backlog / 60.0 + rate
        processed = min(tau, offered)
        saturated = offered >= tau
        backlog = (offered - processed) * 60.0
        machines[minute] = up
        backlog_at[minute] = backlog
        busy = up * min(1.0, processed / tau * busy_noise[minute]) if not saturated else float(up)
        decision = policy.decide(
            Measurement(
                at_s=(minute + 1) * 60.0,
                interval_s=60.0,
                arrival_rate=rate,
                processed_rate=processed,
                backlog_rows=backlog,
                cores_asked=fleet.asked,
                cores_granted=up,
                saturated=saturated,
                cores_busy=busy,
            ),
            constraints,
        )
        if decision.cores is not None:
            fleet.request(min(max(decision.cores, 1), body.max_machines), minute)
    capacity = body.capacity(machines)
    return ClusterRun(
        machines, capacity, backlog_at, capacity > load, fleet.scalings, fleet.started
    )
