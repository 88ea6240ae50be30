"""A grid of backtests: policies, applications and seeds over one trace or several."""

import functools
import multiprocessing
import operator
import os
from collections.abc import Callable, Iterator, Mapping, MutableSequence, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.control.assemble import (
    FORGETTING,
    MACHINE_POLICIES,
    MachineInputs,
    machine_policy,
)
from tidegate.control.capacity.cycle import Cycle
from tidegate.control.capacity.mst import TABLE_III
from tidegate.control.capacity.priced import Tuning
from tidegate.control.names import (
    ALIASES,
    PIPELINE_POLICIES,
    PRICED,
    PRICED_BY_CYCLE,
    policy_name,
)
from tidegate.control.policy import Policy
from tidegate.control.policy_text import split_policy
from tidegate.errors import AskedWrongly, nearest
from tidegate.forecast import Forecast
from tidegate.forecast.analogues import WindowOutlook
from tidegate.models.capacity.bayes import BayesianCapacity
from tidegate.models.capacity.choice import choose, disagreements
from tidegate.models.capacity.curves import CapacityCurve, FitRefused, fit
from tidegate.models.capacity.shapes import Shape
from tidegate.progress import Progress
from tidegate.sim.capacity.applications import CapacityCase
from tidegate.sim.capacity.cluster import CYCLE_MINUTES, Cluster, ClusterRun, cluster, simulate
from tidegate.sim.capacity.forecasts import (
    ReplayedForecaster,
    ReplayedOutlook,
    arma_table,
    outlook_table,
)
from tidegate.sim.capacity.on_pipeline import PipelineSettings, run_on_pipeline
from tidegate.units import counted

Vector = NDArray[np.float64]

FEWEST_ROWS = 100 + CYCLE_MINUTES + 2
"""The shortest trace: the paper's ARMA fits 100 minutes and forecasts U and a cycle beyond."""


_PIPELINE_S, _PRICED_S, _BY_CYCLE_S = 120.0, 5.0, 0.2
"""About how long a week takes on a core, for the time left: on a simulated pipeline, by the priced
policies, and by all others."""
ON_PIPELINE = "pipeline:"
"""Written before the name of a policy that exists for machines as well, to run it on a pipeline."""


def policies(name: str) -> list[str]:
    """The policy with this name or number in table III, or all for machines for `all`.

    A name that no policy for machines has is one for pipelines, such as `latency`.
    """
    if name == "all":
        return list(MACHINE_POLICIES)
    if name in MACHINE_POLICIES:
        return [name]
    numbered = [policy for policy in TABLE_III if policy.split(":")[0] == name]
    if numbered:
        return numbered
    if name.startswith(ON_PIPELINE):
        return [f"{ON_PIPELINE}{policy_name(name.removeprefix(ON_PIPELINE))}"]
    base, _ = split_policy(name)
    known = (*MACHINE_POLICIES, *PIPELINE_POLICIES, *ALIASES)
    if base not in known:
        raise AskedWrongly(f"No policy is named '{base}'{nearest(base, known)}")
    return [policy_name(name)]


def runs_on_pipeline(name: str) -> bool:
    """Whether a policy, named as `policies` does, runs on a simulated pipeline."""
    return name not in MACHINE_POLICIES


class TraceForecasts:
    """A trace and its forecasts, shared by all runs over it and computed on first use."""

    def __init__(self, trace: Vector) -> None:
        self.trace = trace

    @cached_property
    def arma(self) -> dict[int, Forecast]:
        """ARMA forecasts, for the paper's policies 4 to 7."""
        return arma_table(self.trace)

    @cached_property
    def outlook(self) -> dict[int, WindowOutlook]:
        """Outlooks of every minute, for the priced policy."""
        return outlook_table(self.trace, 1)

    @cached_property
    def cycle_outlook(self) -> dict[int, WindowOutlook]:
        """Outlooks of every cycle, for the priced policy that keeps to a cycle."""
        return outlook_table(self.trace, CYCLE_MINUTES)

    def prepare(self, names: list[str]) -> None:
        """Compute the forecasts that these policies need, before processes are forked."""
        if any(name in TABLE_III and TABLE_III[name].forecast for name in names):
            _ = self.arma
        if PRICED in names:
            _ = self.outlook
        if PRICED_BY_CYCLE in names:
            _ = self.cycle_outlook


def make_policy(
    name: str, body: Cluster, rho: float, shared: TraceForecasts, tuning: Tuning | None = None
) -> Policy:
    """A fresh policy of this name for one run."""
    scale = body.application.peak / float(shared.trace.max())
    return machine_policy(
        name,
        MachineInputs(
            rho=rho,
            curve=lambda: trained_curve(body),
            capacity=lambda: BayesianCapacity(
                body.training, max_machines=body.max_machines, forgetting=FORGETTING
            ),
            forecaster=lambda: ReplayedForecaster(shared.arma, scale),
            outlook=lambda minutes: ReplayedOutlook(
                shared.outlook if minutes == 1 else shared.cycle_outlook, scale
            ),
            needed=lambda: body.needed().tolist(),
            cycle=Cycle(minutes=CYCLE_MINUTES),
            tuning=tuning,
        ),
    )


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
    application: CapacityCase,
    seed: int,
    rho: float,
    shared: TraceForecasts,
    tuning: Tuning | None = None,
    pipeline: PipelineSettings | None = None,
    on_share: Callable[[float], None] = lambda _: None,
) -> tuple[Cluster, ClusterRun]:
    """One policy, application and seed over the whole trace.

    `on_share` is told which share of the trace is done, where that takes minutes.
    """
    body = cluster(shared.trace, application, seed)
    if runs_on_pipeline(name):
        minutes = len(body.load)
        return body, run_on_pipeline(
            name.removeprefix(ON_PIPELINE),
            body,
            pipeline,
            on_minute=lambda minute: on_share((minute + 1) / minutes),
        )
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
    within_target: float | None = None
    """On a pipeline: time within the latency target, in per cent."""


def score(name: str, seed: int, body: Cluster, run: ClusterRun, startup_minutes: int = 2) -> Score:
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
        within_target=None if run.within_target is None else 100.0 * run.within_target,
    )


@dataclass(frozen=True, slots=True)
class BacktestJob:
    """One run of a grid: a policy, an application and a seed over one of its weeks."""

    policy: str
    application: CapacityCase
    seed: int
    rho: float
    week: str = ""
    """The name of the week, where a grid has several."""


def grid(
    shared: TraceForecasts,
    names: list[str],
    apps: Sequence[CapacityCase],
    seeds: int,
    rho: float,
    *,
    processes: int | None = None,
    tuning: Tuning | None = None,
    pipeline: PipelineSettings | None = None,
    progress: Progress | None = None,
) -> Iterator[Score]:
    """Run every combination over one week; yield scores in order."""
    jobs = [
        BacktestJob(name, app, seed, rho) for name in names for app in apps for seed in range(seeds)
    ]
    return run_jobs(
        jobs,
        {"": shared},
        processes=processes,
        tuning=tuning,
        pipeline=pipeline,
        progress=progress,
    )


def run_jobs(
    jobs: Sequence[BacktestJob],
    weeks: Mapping[str, TraceForecasts],
    *,
    processes: int | None = None,
    tuning: Tuning | None = None,
    pipeline: PipelineSettings | None = None,
    progress: Progress | None = None,
) -> Iterator[Score]:
    """Run the jobs in as many processes as there are cores; yield scores in their order."""
    if progress is not None:
        progress.doing("forecasting the load")
    for name, shared in weeks.items():
        shared.prepare(list(dict.fromkeys(job.policy for job in jobs if job.week == name)))
    workers = min(processes or os.cpu_count() or 1, len(jobs))
    # Fork, so that the processes share the tables and nothing is copied through a pipe.
    context = multiprocessing.get_context("fork")
    shares = context.RawArray("d", len(jobs))
    given: dict[str, Any] = {
        "weeks": weeks,
        "tuning": tuning,
        "pipeline": pipeline,
        "shares": shares,
    }
    if progress is not None:
        _follow(progress, jobs, shares)
    if workers <= 1:
        for place, job in enumerate(jobs):
            yield _run_job(place, job, **given)
        return
    _INHERITED.clear()
    _INHERITED.update(given)
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        chunk = max(1, len(jobs) // (workers * 8))
        yield from pool.map(_inherited_job, range(len(jobs)), jobs, chunksize=chunk)
    _INHERITED.clear()


def _follow(progress: Progress, jobs: Sequence[BacktestJob], shares: Sequence[float]) -> None:
    """Let the progress be the work that the jobs, in their processes, have done."""
    weights = [takes_s(job.policy) for job in jobs]
    progress.expect(sum(weights))
    progress.doing(f"{counted(len(jobs), 'run')} over the whole load")
    progress.follow(lambda: sum(map(operator.mul, weights, shares)))


_INHERITED: dict[str, Any] = {}


def takes_s(policy: str) -> float:
    """About how long a week under this policy takes on a core."""
    if runs_on_pipeline(policy):
        return _PIPELINE_S
    return _PRICED_S if policy in (PRICED, PRICED_BY_CYCLE) else _BY_CYCLE_S


def _inherited_job(place: int, job: BacktestJob) -> Score:
    return _run_job(place, job, **_INHERITED)


def _run_job(
    place: int,
    job: BacktestJob,
    weeks: Mapping[str, TraceForecasts],
    tuning: Tuning | None,
    pipeline: PipelineSettings | None,
    shares: MutableSequence[float],
) -> Score:
    """Run the job at this place of the list, and note there which share of it is done."""
    name, seed, shared = job.policy, job.seed, weeks[job.week]
    note = functools.partial(shares.__setitem__, place)
    body, run = run_one(name, job.application, seed, job.rho, shared, tuning, pipeline, note)
    note(1.0)
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
            key: None if first is None else float(np.mean([column[key] for column in columns]))
            for key, first in columns[0].items()
            if key not in ("app", "policy", "seed")
        }
        means.append({"app": app, "policy": policy, **mean})
    return means
