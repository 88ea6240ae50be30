"""`tidegate plan`: finds how many cores each operator of a network should have."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tidegate.commands.output import Json, print_json, print_line, print_table
from tidegate.errors import AskedWrongly, nearest
from tidegate.units import format_duration, format_share, parse_duration

if TYPE_CHECKING:  # NumPy, SciPy and Numba take a second to import, which would slow down `--help`
    from tidegate.control.allocation.allocate import CoreAllocation
    from tidegate.models.queueing.stations import Queues


def plan(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE.toml",
            help="The operators and their rates; docs/commands.md describes it.",
        ),
    ] = None,
    cores: Annotated[
        int | None, typer.Option("--cores", help="Cores to divide for the lowest latency.")
    ] = None,
    latency: Annotated[
        str | None,
        typer.Option("--latency", help="Mean latency to reach with the fewest cores: 500ms, 2s."),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="mmk: rows come and take their time at random; gigk: as irregularly as the file"
            " says.",
        ),
    ] = "mmk",
    capacity: Annotated[
        Path | None,
        typer.Option(help="Instead of FILE.toml: a file that tidegate calibrate has written."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="With --capacity: rows per second to sustain.")
    ] = None,
    qos: Annotated[
        float, typer.Option(help="With --capacity: how sure it should be, from 0.5 to below 1.")
    ] = 0.95,
    json: Json = False,
) -> None:
    """Compute how many cores a pipeline needs, and how to divide them among its operators.

    FILE.toml says how many rows come in, how many a core of each operator processes, and how rows
    go from one operator to the next. With --cores, these cores are divided for the lowest latency;
    with --latency, it is the fewest cores that reach it. Nothing runs: queueing theory gives the
    answer at once.

    With --capacity it goes by what tidegate calibrate has measured instead: the fewest cores for
    --rate rows a second, or the rate that --cores can take, both within --latency if it is given.
    """
    if capacity is not None:
        from tidegate.commands.plan_capacity import plan_capacity

        if file is not None:
            raise AskedWrongly(f"plan takes {file} or --capacity; give one of them")
        plan_capacity(capacity, rate=rate, cores=cores, latency=latency, qos=qos, json=json)
        return
    if file is None:
        raise AskedWrongly("plan needs a network; give FILE.toml, or --capacity FILE")
    if rate is not None:
        raise AskedWrongly("--rate is for --capacity; a network file has its own rate")
    from tidegate.commands.networkfile import read_network
    from tidegate.control.allocation.allocate import assign, provision
    from tidegate.models.queueing.stations import MODELS, Queues

    if (cores is None) == (latency is None):
        raise AskedWrongly("plan needs either --cores or --latency; give exactly one of them")
    chosen = next((known for known in MODELS if known == model), None)
    if chosen is None:
        raise AskedWrongly(f"there is no model '{model}'{nearest(model, MODELS)}")
    if cores is not None and cores < 1:
        raise AskedWrongly(f"--cores must be at least 1, but is {cores}")
    network = read_network(file)
    queues = Queues.of_network(network, chosen)
    if cores is not None:
        answer = assign(queues, cores)
    else:
        answer = provision(queues, parse_duration(latency or ""))

    if json:
        allocation = dict(zip(network.names, answer.cores.tolist(), strict=True))
        print_json(
            {
                "allocation": allocation,
                "cores": answer.total,
                "latency_ms": 1e3 * answer.latency_s,
                "model": chosen,
            }
        )
        return
    _print_table(network.names, queues, answer)
    spare = f" ({cores - answer.total} would not help)" if cores and cores > answer.total else ""
    print_line(
        f"{answer.total} cores{spare}: mean latency {format_duration(answer.latency_s)}"
        f" (model {chosen})"
    )


def _print_table(names: Sequence[str], queues: "Queues", answer: "CoreAllocation") -> None:
    table = Table("operator", title=None)
    for column in ("rows/s", "cores", "busy", "latency", "of the whole"):
        table.add_column(column, justify="right")
    parts_s = queues.visit_ratio * queues.latency(answer.cores)
    used = queues.utilisation(answer.cores)
    for index, name in enumerate(names):
        table.add_row(
            name,
            f"{queues.arrival_rate[index]:.3g}",
            str(answer.cores[index]),
            format_share(used[index]),
            format_duration(parts_s[index]),
            format_share(parts_s[index] / answer.latency_s),
        )
    print_table(table)
