"""A grid of backtests: every policy, application and seed over one trace."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.control.baselines.ds2 import Ds2
from tidegate.control.baselines.dynamic_allocation import DynamicAllocation
from tidegate.control.baselines.fixed import GroundTruth, StaticPeak
from tidegate.control.baselines.hpa import UtilisationThreshold
from tidegate.control.capacity.cycle import Bounds, Cycle
from tidegate.control.capacity.mst import TABLE_III, MstPolicy
from tidegate.control.capacity.priced import TidegatePolicy, Tuning
from tidegate.control.policy import Policy
from tidegate.errors import AskedWrongly, nearest
from tidegate.forecast import Forecast
from tidegate.forecast.analogues import Outlook
from tidegate.models.capacity.door import (
    BayesianCapacity,
    CapacityCurve,
    FitRefused,
    Shape,
    choose,
    disagreements,
    fit,
)
from tidegate.sim.capacity.applications import Application
from tidegate.sim.capacity.cluster import CYCLE_MINUTES, Cluster, Run, cluster, simulate
from tidegate.sim.capacity.forecasts import (
    ReplayedForecaster,
    ReplayedOutlook,
    arma_table,
    outlook_table,
)

Vector = NDArray[np.float64]

DEFAULT_POLICY = "tidegate"
POLICIES: tuple[str, ...] = (
    DEFAULT_POLICY,
    "tidegate-cycle",
    *TABLE_III,
    "static-peak",
    "ground-truth",
    UtilisationThreshold.name,
    DynamicAllocation.name,
    Ds2.name,
)
FEWEST_ROWS = 100 + CYCLE_MINUTES + 2
"""The shortest trace: the paper's ARMA fits 100 minutes and forecasts U and a cycle beyond."""


def policies(name: str) -> list[str]:
    """The policy with this name or number in table III, or every one for `all`."""
    if name == "all":
        return list(POLICIES)
    if name in POLICIES:
        return [name]
    numbered = [policy for policy in TABLE_III if policy.split(":")[0] == name]
    if numbered:
        return numbered
    raise AskedWrongly(f"No policy is named '{name}'{nearest(name, POLICIES)}")


class Shared:
    """A trace and its forecasts, shared by all runs over it and computed on first use."""

    def __init__(self, trace: Vector) -> None:
        self.trace = trace

    @cached_property
    def arma(self) -> dict[int, Forecast]:
        """ARMA forecasts, for the paper's policies 4 to 7."""
        return arma_table(self.trace)

    @cached_property
    def outlook(self) -> dict[int, Outlook]:
        """Outlooks of every minute, for `tidegate`."""
        return outlook_table(self.trace, 1)

    @cached_property
    def cycle_outlook(self) -> dict[int, Outlook]:
        """Outlooks of every cycle, for `tidegate-cycle`."""
        return outlook_table(self.trace, CYCLE_MINUTES)

    def prepare(self, names: list[str]) -> None:
        """Compute the forecasts that these policies need, before processes are forked."""
        if any(name in TABLE_III and TABLE_III[name].forecast for name in names):
            _ = self.arma
        if "tidegate" in names:
            _ = self.outlook
        if "tidegate-cycle" in names:
            _ = self.cycle_outlook


def make_policy(
    name: str, body: Cluster, rho: float, shared: Shared, tuning: Tuning | None = None
) -> Policy:
    """A fresh policy of this name for one run."""
    bounds = Bounds(1, body.max_machines)
    scale = body.application.peak / float(shared.trace.max())
    if name in TABLE_III:
        forecaster = ReplayedForecaster(shared.arma, scale) if TABLE_III[name].forecast else None
        return MstPolicy(name, trained_curve(body), rho, bounds=bounds, forecaster=forecaster)
    if name in ("tidegate", "tidegate-cycle"):
        every_minute = name == "tidegate"
        return TidegatePolicy(
            ReplayedOutlook(shared.outlook if every_minute else shared.cycle_outlook, scale),
            BayesianCapacity(body.training, max_machines=body.max_machines, forgetting=0.999),
            rho,
            bounds=bounds,
            cycle=Cycle(minutes=1 if every_minute else CYCLE_MINUTES),
            tuning=tuning,
        )
    makers: dict[str, Callable[[], Policy]] = {
        "static-peak": lambda: StaticPeak(int(body.needed().max())),
        "ground-truth": lambda: GroundTruth(body.needed().tolist()),
        UtilisationThreshold.name: lambda: UtilisationThreshold(bounds),
        DynamicAllocation.name: lambda: DynamicAllocation(bounds),
        Ds2.name: lambda: Ds2(bounds),
    }
    return makers[name]()


def trained_curve(body: Cluster) -> CapacityCurve:
    """The paper's offline training (III-A): fit two curves, and sample where they disagree."""
    most = body.max_machines
    rng = np.random.default_rng([body.seed, 7])
    curves = []
    for shape in Shape:
        try:
            curves.append(fit(body.training, shape, most))
        except FitRefused:
            continue
    where = disagreements(curves[0], curves[1]) if len(curves) == 2 else []
    return choose(body.training, body.application.measure(where, rng), most).model


def run_one(
    name: str,
    application: Application,
    seed: int,
    rho: float,
    shared: Shared,
    tuning: Tuning | None = None,
) -> tuple[Cluster, Run]:
    """One policy, application and seed over the whole trace."""
    body = cluster(shared.trace, application, seed)
    policy = make_policy(name, body, rho, shared, tuning)
    at_once = name == "ground-truth"  # m_t of eq. 23 has no start-up time
    run = simulate(policy, body, startup_minutes=0) if at_once else simulate(policy, body)
    return body, run


@dataclass(frozen=True, slots=True)
class Score:
    """The paper's measures of one run."""

    app: str
    policy: str
    seed: int
    qos: float
    """QoS satisfaction rate in per cent (eq. 22)."""
    cost_vs_truth: float
    """Cost relative to the ground truth (eq. 23)."""
    cost_vs_peak: float
    """Cost relative to the static peak (eq. 24)."""
    max_backlog: float
    """The largest backlog in MB."""
    scalings: int
    billed_vs_truth: float
    """Eq. 23 if machines are also paid for while they start."""


def score(name: str, seed: int, body: Cluster, run: Run, startup_minutes: int = 2) -> Score:
    """Compute the paper's measures of a run."""
    needed = body.needed()
    machine_minutes = float(run.machines.sum())
    starting = 0 if name == "ground-truth" else startup_minutes * run.started
    return Score(
        app=body.application.name,
        policy=name,
        seed=seed,
        qos=100.0 * run.qos,
        cost_vs_truth=machine_minutes / float(needed.sum()),
        cost_vs_peak=machine_minutes / float(len(needed) * needed.max()),
        max_backlog=float(run.backlog.max()),
        scalings=run.scalings,
        billed_vs_truth=(machine_minutes + starting) / float(needed.sum()),
    )


Job = tuple[str, Application, int]


def grid(
    shared: Shared,
    names: list[str],
    apps: list[Application],
    seeds: int,
    rho: float,
    *,
    processes: int | None = None,
    tuning: Tuning | None = None,
) -> Iterator[Score]:
    """Run every combination, in as many processes as there are cores; yield scores in order."""
    jobs: list[Job] = [(name, app, seed) for name in names for app in apps for seed in range(seeds)]
    shared.prepare(names)
    workers = min(processes or os.cpu_count() or 1, len(jobs))
    if workers <= 1:
        for name, app, seed in jobs:
            body, run = run_one(name, app, seed, rho, shared, tuning)
            yield score(name, seed, body, run)
        return
    _INHERITED.clear()
    _INHERITED.update(shared=shared, rho=rho, tuning=tuning)
    # Fork, so that the processes share the tables and nothing is copied through a pipe.
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield from pool.map(_job, jobs, chunksize=max(1, len(jobs) // (workers * 8)))
    _INHERITED.clear()


_INHERITED: dict[str, Any] = {}


def _job(job: Job) -> Score:
    name, app, seed = job
    inherited = _INHERITED
    body, run = run_one(name, app, seed, inherited["rho"], inherited["shared"], inherited["tuning"])
    return score(name, seed, body, run)


def rows(scores: list[Score]) -> list[dict[str, Any]]:
    """Average the seeds of each application and policy, in order of appearance."""
    groups: dict[tuple[str, str], list[Score]] = {}
    for one in scores:
        groups.setdefault((one.app, one.policy), []).append(one)
    means = []
    for (app, policy), group in groups.items():
        columns = [asdict(one) for one in group]
        mean = {
            key: float(np.mean([column[key] for column in columns]))
            for key in columns[0]
            if key not in ("app", "policy", "seed")
        }
        means.append({"app": app, "policy": policy, **mean})
    return means
