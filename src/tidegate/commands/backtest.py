"""`tidegate backtest`: simulates scaling policies on a recorded or generated week of load."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.table import Table

from tidegate.commands.output import Json, print_json, print_line, print_table, progress
from tidegate.control.names import DEFAULT_MACHINE_POLICY
from tidegate.errors import AskedWrongly
from tidegate.units import parse_duration

if TYPE_CHECKING:  # scipy and numba take seconds to import, which would slow down `tidegate --help`
    from tidegate.sim.capacity.cluster import Cluster, ClusterRun
    from tidegate.sim.capacity.measured_application import MeasuredApplication
    from tidegate.view.pages.backtest import Shown

ROW_FIELDS = (
    "app",
    "policy",
    "qos",
    "cost_vs_truth",
    "cost_vs_peak",
    "max_backlog",
    "scalings",
    "billed_vs_truth",
    "within_target",
)
_PIPELINE_SEEDS, _MACHINE_SEEDS = 1, 5


def backtest(
    trace: Annotated[
        str,
        typer.Argument(
            help="A CSV file with the header minute,count and a row for each minute; or a made-up"
            " week, which needs no file: worldcup-like, tweets-like or flights-like."
        ),
    ],
    app: Annotated[
        str | None,
        typer.Option(
            help="Which modelled application the load is for, such as grep; or all.",
            show_default="all",
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Who decides; may be repeated. For machines: priced-capacity, hpa, ds2,"
            " spark-dynamic-allocation, static-peak, ground-truth (perfect hindsight), 0 to 7 (of"
            " the MST paper), or all. On a simulated pipeline: what start() takes, such as"
            f" latency; write pipeline:{DEFAULT_MACHINE_POLICY} for one that exists for both.",
            show_default=DEFAULT_MACHINE_POLICY,
        ),
    ] = None,
    rho: Annotated[
        float,
        typer.Option(
            help="The share of minutes in which the machines should be enough, from 0.5 to below 1."
        ),
    ] = 0.95,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="What machines can do varies at random; so many runs are averaged.",
            show_default="5; 1 with a policy on a pipeline, which takes minutes",
        ),
    ] = None,
    target: Annotated[
        str, typer.Option(help="The mean latency that policies on a pipeline are to keep.")
    ] = "10s",
    tick: Annotated[
        str,
        typer.Option(
            help="How often policies on a pipeline decide; 1s, as on Spark, takes ten times as"
            " long."
        ),
    ] = "10s",
    capacity: Annotated[
        Path | None,
        typer.Option(
            help="A file that tidegate calibrate has written, in place of the modelled"
            " applications; the load is scaled to what its most cores can take."
        ),
    ] = None,
    json: Json = False,
    plot: Annotated[
        Path | None, typer.Option(help="Write load, machines and backlog as one HTML file.")
    ] = None,
) -> None:
    """Try scaling policies on a week of load: how often each had too few machines, and the cost.

    The load is a number of rows for each minute. Minute by minute, a policy decides how many
    machines to have, without knowing what comes. The table says in which share of the minutes they
    were enough (QoS), what they cost compared with perfect hindsight and with always having enough
    for the peak, how far the work fell behind, and how often their number changed.

    How much a number of machines can do is modelled for eight applications (--app), or measured by
    tidegate calibrate (--capacity). Policies that run on Spark, such as latency, decide every few
    seconds on a simulated pipeline instead; a week takes them minutes.
    """
    from tidegate.models.capacity.machines import check_target
    from tidegate.sim.capacity.applications import CapacityCase, applications
    from tidegate.sim.capacity.backtest import (
        TraceForecasts,
        grid,
        policies,
        rows,
        run_one,
        runs_on_pipeline,
    )
    from tidegate.sim.capacity.on_pipeline import PipelineSettings
    from tidegate.view.pages.backtest import write_plot

    check_target(rho)
    given = policy or [DEFAULT_MACHINE_POLICY]
    names = list(dict.fromkeys(name for one in given for name in policies(one)))
    slow = any(map(runs_on_pipeline, names))
    if seeds is None:
        seeds = _PIPELINE_SEEDS if slow else _MACHINE_SEEDS
    if seeds < 1:
        raise AskedWrongly(f"seeds is {seeds}, but at least one draw is needed: give 1 or more.")
    pipeline = PipelineSettings(target_s=parse_duration(target), tick_s=parse_duration(tick))
    if app is not None and capacity is not None:
        raise AskedWrongly(
            f"--app {app} and --capacity {capacity} both say what the load runs on; give one of"
            " them"
        )
    apps: Sequence[CapacityCase] = (
        applications(app or "all") if capacity is None else [_measured(capacity)]
    )
    if plot is not None and not plot.parent.is_dir():
        raise AskedWrongly(
            f"The directory {plot.parent} of the plot does not exist: create it, or name another."
        )
    if plot is not None and plot.is_dir():
        raise AskedWrongly(f"--plot {plot} is a directory: name a file, such as week.html.")
    shared = TraceForecasts(load_trace(trace))
    with progress("backtest") as told:
        scores = list(
            grid(shared, names, apps, seeds, rho, pipeline=pipeline, progress=told.progress)
        )
        if plot is not None:
            told.progress.expect(len(names))
            drawn = []
            for name in names:
                told.progress.step(f"running {name} again for the plot")
                ran = run_one(
                    name,
                    apps[0],
                    0,
                    rho,
                    shared,
                    pipeline=pipeline,
                    on_share=told.progress.within if runs_on_pipeline(name) else lambda _: None,
                )
                drawn.append(_shown(name, *ran))
            write_plot(drawn, f"{trace}, rho {rho:g}", plot)
    table = sorted(rows(scores), key=lambda row: (-row["qos"], row["cost_vs_truth"]))
    if json:
        print_json({"rows": [{field: row[field] for field in ROW_FIELDS} for row in table]})
        return
    runs = "one run each" if seeds == 1 else f"mean of {seeds} runs each"
    title = f"{trace}, {runs}"
    if slow:
        title += f"; on a pipeline: mean latency {target}, a decision every {tick}"
    unit = "MB" if capacity is None else "rows"
    print_table(_table(table, title, unit))
    if len(apps) > 1:
        print_table(_table(_over_applications(table), "mean over the applications", unit))
    _explain(rho, on_pipeline=slow)
    if plot is not None:
        print_line(f"plot of {apps[0].name}: {plot}")


def _measured(capacity: Path) -> "MeasuredApplication":
    from tidegate.models.capacity.measured import read_capacity
    from tidegate.sim.capacity.measured_application import MeasuredApplication

    return MeasuredApplication(read_capacity(capacity))


def load_trace(trace: str) -> NDArray[np.float64]:
    """The generated week of this name, or the week in this file."""
    from tidegate.sim.capacity.backtest import FEWEST_ROWS
    from tidegate.workload.trace import read_trace
    from tidegate.workload.weeks import WEEKS

    if trace in WEEKS:
        return WEEKS[trace]()
    path = Path(trace)
    if not path.exists():
        raise AskedWrongly(
            f"There is no file {trace}: give a CSV with header minute,count, or one of "
            f"{', '.join(WEEKS)}."
        )
    return read_trace(path, FEWEST_ROWS)


def _shown(policy: str, body: "Cluster", run: "ClusterRun") -> "Shown":
    from tidegate.view.pages.backtest import Shown

    return Shown(
        application=body.application.name,
        policy=policy,
        load=body.load,
        capacity=run.capacity,
        machines=run.machines,
        backlog=run.backlog,
    )


def _over_applications(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    means = []
    for policy in dict.fromkeys(row["policy"] for row in table):
        group = [row for row in table if row["policy"] == policy]
        mean = {
            field: None if row is None else float(np.mean([one[field] for one in group]))
            for field in ROW_FIELDS[2:]
            for row in [group[0][field]]
        }
        means.append({"app": f"all {len(group)}", "policy": policy, **mean})
    return sorted(means, key=lambda row: (-row["qos"], row["cost_vs_truth"]))


def _table(table: list[dict[str, Any]], title: str, unit: str) -> Table:
    drawn = Table(title=title, title_justify="left")
    for column in ("application", "policy"):
        drawn.add_column(column)
    on_pipeline = any(row["within_target"] is not None for row in table)
    columns = ["QoS", "cost / hindsight", "cost / peak", f"backlog, {unit}", "changes"]
    for column in [*columns, "on time"] if on_pipeline else columns:
        drawn.add_column(column, justify="right")
    for row in table:
        drawn.add_row(
            row["app"],
            row["policy"],
            _percent(row["qos"]),
            f"{row['cost_vs_truth']:.3g}",
            f"{row['cost_vs_peak']:.3g}",
            f"{row['max_backlog']:,.0f}",
            f"{row['scalings']:.0f}",
            *([_percent(row["within_target"])] if on_pipeline else []),
        )
    return drawn


def _explain(rho: float, *, on_pipeline: bool) -> None:
    """Say what the columns are, for somebody who sees them for the first time."""
    lines = [
        f"QoS: minutes in which the machines were enough (asked for: {100 * rho:g} %)",
        "cost: machine-minutes, over those of a policy that knows the future, and over those of"
        " the most machines all week",
        "backlog: the most work that waited; changes: of the number of machines",
    ]
    if on_pipeline:
        lines.append("on time: the share of the time within the latency target")
    for line in lines:
        print_line(line)


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} %"
