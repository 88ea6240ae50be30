"""`tidegate backtest`: simulates scaling policies on a recorded or generated week of load."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tidegate.commands.output import Json, err, out, print_json
from tidegate.control.names import DEFAULT_MACHINE_POLICY
from tidegate.errors import AskedWrongly

if TYPE_CHECKING:  # scipy and numba take seconds to import, which would slow down `tidegate --help`
    from tidegate.sim.capacity.backtest import Score
    from tidegate.sim.capacity.cluster import Cluster, ClusterRun
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
)


def backtest(
    trace: Annotated[
        str,
        typer.Argument(
            help="CSV with header minute,count and a row per minute; or worldcup-like, "
            "tweets-like, flights-like, which need no file."
        ),
    ],
    app: Annotated[
        str, typer.Option(help="One of the paper's eight applications, or all.")
    ] = "all",
    policy: Annotated[
        str, typer.Option(help="Name or table III number of a policy, or all.")
    ] = DEFAULT_MACHINE_POLICY,
    rho: Annotated[float, typer.Option(help="QoS target: share of minutes, in [0.5, 1).")] = 0.95,
    seeds: Annotated[
        int, typer.Option(help="Number of random draws of capacity noise to average over.")
    ] = 5,
    json: Json = False,
    plot: Annotated[
        Path | None, typer.Option(help="Write load, machines and backlog as one HTML file.")
    ] = None,
) -> None:
    """Replay a week of load against scaling policies: QoS (MST eq. 22) and cost (eq. 23, 24)."""
    from tidegate.models.capacity.machines import check_target
    from tidegate.sim.capacity.applications import applications
    from tidegate.sim.capacity.backtest import TraceForecasts, grid, policies, rows, run_one
    from tidegate.view.pages.backtest import write_plot

    check_target(rho)
    if seeds < 1:
        raise AskedWrongly(f"seeds is {seeds}, but at least one draw is needed: give 1 or more.")
    names = policies(policy)
    apps = applications(app)
    if plot is not None and not plot.parent.is_dir():
        raise AskedWrongly(
            f"The directory {plot.parent} of the plot does not exist: create it, or name another."
        )
    shared = TraceForecasts(load_trace(trace))
    scores: list[Score] = []
    with _progress() as progress:
        task = progress.add_task("forecasting the trace", total=None)
        shared.prepare(names)
        progress.update(task, description="replaying", total=len(names) * len(apps) * seeds)
        for score in grid(shared, names, apps, seeds, rho):
            scores.append(score)
            progress.advance(task)
        if plot is not None:
            progress.update(task, description="drawing", total=None)
            shown = [_shown(name, *run_one(name, apps[0], 0, rho, shared)) for name in names]
            write_plot(shown, f"{trace}, rho {rho:g}", plot)
    table = sorted(rows(scores), key=lambda row: (-row["qos"], row["cost_vs_truth"]))
    if json:
        print_json({"rows": [{field: row[field] for field in ROW_FIELDS} for row in table]})
        return
    out.print(_table(table, f"{trace}, rho {rho:g}, {seeds} seeds"))
    if len(apps) > 1:
        out.print(_table(_over_applications(table), "mean over the applications"))
    if plot is not None:
        out.print(f"Plot of {apps[0].name}: {plot}")


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


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=err,
        transient=True,
    )


def _over_applications(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    means = []
    for policy in dict.fromkeys(row["policy"] for row in table):
        group = [row for row in table if row["policy"] == policy]
        mean = {field: float(np.mean([row[field] for row in group])) for field in ROW_FIELDS[2:]}
        means.append({"app": f"all {len(group)}", "policy": policy, **mean})
    return sorted(means, key=lambda row: (-row["qos"], row["cost_vs_truth"]))


def _table(table: list[dict[str, Any]], title: str) -> Table:
    drawn = Table(title=title, title_justify="left", padding=(0, 0))
    for column in ("application", "policy"):
        drawn.add_column(column, overflow="fold")
    for column in ("QoS %", "/ truth", "/ peak", "backlog", "scalings"):
        drawn.add_column(column, justify="right", no_wrap=True)
    drawn.caption = (
        "cost in machine-minutes / ground truth and / static peak; largest backlog in MB"
    )
    drawn.caption_justify = "left"
    for row in table:
        drawn.add_row(
            row["app"],
            row["policy"],
            f"{row['qos']:.2f}",
            f"{row['cost_vs_truth']:.3f}",
            f"{row['cost_vs_peak']:.3f}",
            f"{row['max_backlog']:,.0f}",
            f"{row['scalings']:.0f}",
        )
    return drawn
