"""Figure 10: load, machines and backlog of Grep over the week, by policy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.benching import Aim, at_most
from tidegate.control.baselines.fixed import GroundTruth, StaticPeak
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.papers.mst.contenders import (
    MODELLED,
    ON_SPARK,
    ONE_RUN,
    OURS,
    Contender,
    numbered,
    with_ours,
)
from tidegate.papers.mst.loads import LOADS, asked_weeks, said
from tidegate.sim.capacity.applications import APPLICATIONS
from tidegate.sim.capacity.backtest import TraceForecasts, run_one, runs_on_pipeline, takes_s
from tidegate.sim.capacity.cluster import CYCLE_MINUTES, Cluster, ClusterRun, cluster
from tidegate.sim.capacity.on_pipeline import run_on_pipeline
from tidegate.view.pages.paper import Curve, Picture

Vector = NDArray[np.float64]

SEED = 0
SHOWN = numbered(0, 1, 5, 7)
REFERENCES = (Contender(GroundTruth.name), Contender(StaticPeak.name))
PAPERS_BACKLOG_GB: dict[str, float | str] = {
    "0:MST": 12.8,
    "5:MST+UA;ARMA": "avoided",
    "7:MST+UA+OL;ARMA": "avoided",
}
DRAWN_LOAD = ("0:MST", "7:MST+UA+OL;ARMA", GroundTruth.name, StaticPeak.name)
"""What figures 10 (a) and (b) draw of the paper's policies: the others hardly differ."""
QUICK_MINUTES = 2 * 1440
_MINUTES_PER_DAY = 1440.0


@dataclass(frozen=True, slots=True)
class GrepRun:
    """What one policy did in the week, with one value per minute."""

    machines: Vector
    capacity: Vector
    """MB/s that the machines sustained."""
    backlog: Vector
    """MB."""
    qos: float
    """Per cent."""

    @property
    def largest_backlog_gb(self) -> float:
        """In gigabytes."""
        return float(self.backlog.max()) / 1000.0

    @property
    def machine_hours(self) -> float:
        """What the week costs."""
        return float(self.machines.sum()) / 60.0


def figure_10(asked: Asked) -> Findings:
    """Run Grep over the week with the paper's four policies, its two references, and ours."""
    (week,) = asked_weeks(asked.extra, LOADS[:1])
    contenders = (*with_ours(SHOWN, asked), *REFERENCES)
    forecasts = week.forecasts
    if asked.quick:
        forecasts = TraceForecasts(forecasts.trace[:QUICK_MINUTES])
    body = cluster(forecasts.trace, APPLICATIONS["grep"], SEED)
    asked.progress.doing("forecasting the week")
    forecasts.prepare([one.policy for one in contenders])
    asked.progress.expect(sum(takes_s(one.policy) for one in contenders))
    found = {}
    for one in contenders:
        asked.progress.step(one.label, takes_s(one.policy))
        found[one] = _run(one, body, forecasts, asked.progress.within)
    return told(body.load, found, said((week,)))


def _run(
    contender: Contender,
    body: Cluster,
    forecasts: TraceForecasts,
    on_share: Callable[[float], None],
) -> GrepRun:
    if runs_on_pipeline(contender.policy):
        minutes = len(body.load)
        run = run_on_pipeline(
            contender.policy, body, on_minute=lambda minute: on_share((minute + 1) / minutes)
        )
    else:
        _, run = run_one(contender.policy, body.application, SEED, contender.rho, forecasts)
    return _of(run)


def _of(run: ClusterRun) -> GrepRun:
    return GrepRun(
        machines=np.asarray(run.machines, dtype=np.float64),
        capacity=run.capacity,
        backlog=run.backlog,
        qos=100.0 * run.qos,
    )


def told(load: Vector, found: Mapping[Contender, GrepRun], loads: str) -> Findings:
    """The table, the aims and the charts of what was found."""
    drawn = {
        one.label: run
        for one, run in found.items()
        if one.policy in DRAWN_LOAD or one in (*OURS, ON_SPARK)
    }
    backlogs = {one.label: run for one, run in found.items() if one not in REFERENCES}
    return Findings(
        compared=tuple(row for one, run in found.items() for row in _rows(one, run)),
        aims=tuple(_aims(found)),
        pictures=(
            Picture(
                "Load and allocated capacity (fig. 10a), highest load and mean capacity of each"
                " ten minutes",
                "days",
                "MB/s",
                (
                    _line("load", load, np.max),
                    *(_line(name, run.capacity, np.mean) for name, run in drawn.items()),
                ),
            ),
            Picture(
                "Machines (fig. 10b), mean of each ten minutes",
                "days",
                "machines",
                tuple(_line(name, run.machines, np.mean) for name, run in drawn.items()),
            ),
            Picture(
                "Backlog (fig. 10c), highest of each ten minutes",
                "days",
                "MB",
                tuple(_line(name, run.backlog, np.max) for name, run in backlogs.items()),
            ),
        ),
        notes=(loads, MODELLED, *([ONE_RUN] if ON_SPARK in found else [])),
    )


def _rows(contender: Contender, run: GrepRun) -> list[Compared]:
    name = contender.label
    return [
        Compared(
            f"{name}: largest backlog, GB",
            PAPERS_BACKLOG_GB.get(contender.policy),
            round(run.largest_backlog_gb, 2),
        ),
        Compared(
            f"{name}: QoS %, machine-hours, most machines",
            None,
            f"{run.qos:.2f}, {run.machine_hours:,.0f}, {run.machines.max():.0f}",
        ),
    ]


def _aims(found: Mapping[Contender, GrepRun]) -> list[Aim]:
    """Forecasts avoid backlog, and ours avoids more of it with fewer machines than policy 7."""
    zero, _, _, seven = SHOWN
    strict = OURS[-1]
    base = max(found[zero].largest_backlog_gb, 1e-9)
    return [
        at_most(
            "largest backlog, policy 7 over policy 0", found[seven].largest_backlog_gb / base, 1.0
        ),
        at_most(
            f"largest backlog, {strict.label} over policy 7",
            found[strict].largest_backlog_gb / max(found[seven].largest_backlog_gb, 1e-9),
            1.0,
        ),
        at_most(
            f"machine-hours, {strict.label} over policy 7",
            found[strict].machine_hours / found[seven].machine_hours,
            1.0,
        ),
    ]


def _line(name: str, values: Vector, fold: Callable[..., Vector]) -> Curve:
    """One value for each cycle: a week of minutes would make a page of many megabytes."""
    whole = len(values) // CYCLE_MINUTES * CYCLE_MINUTES
    folded = fold(values[:whole].reshape(-1, CYCLE_MINUTES), axis=1)
    days = np.arange(len(folded)) * CYCLE_MINUTES / _MINUTES_PER_DAY
    return Curve(name, tuple(days.tolist()), tuple(folded.tolist()), marked=False)
