"""`tidegate planetlab`: runs the overload paper's experiment with growing numbers of queries."""

from typing import Annotated, Any

import typer
from rich.table import Table

from tidegate.commands.output import Json, err, out, print_json
from tidegate.errors import AskedWrongly
from tidegate.units import parse_duration


def planetlab(
    queries: Annotated[
        str, typer.Option(help="Numbers of queries, with one run for each: 20,100,200.")
    ] = "20,100,200",
    target: Annotated[str, typer.Option(help="Mean latency to hold.")] = "2s",
    seconds: Annotated[float, typer.Option(help="How long each run takes.")] = 60.0,
    series: Annotated[
        str | None,
        typer.Option(help="CSV of CPU use (sample,node0,...); by default it is generated."),
    ] = None,
    shedding: Annotated[bool, typer.Option(help="Whether rows may be shed.")] = True,
    cores: Annotated[int, typer.Option(help="Cores that the queries share.")] = 2,
    seed: Annotated[int, typer.Option(help="Seed of the generated series and keys.")] = 1,
    json: Json = False,
) -> None:
    """Average the CPU use of ten nodes every second, for more queries than the machine can carry.

    Each node sends 50, 100, 150 and again 100 rows a second, ten seconds at a time.
    """
    numbers = _numbers(queries)
    target_s = parse_duration(target)
    if not 5.0 <= seconds <= 86_400.0:
        raise AskedWrongly(f"runs of {seconds:g} seconds are not possible; give 5 to 86400 (a day)")
    if cores < 1:
        raise AskedWrongly(f"{cores} cores are not possible; give 1 or more")
    # Imported here because Spark takes a second to import, which would slow down `--help`.
    from tidegate.apps.planetlab import Planetlab, run_planetlab
    from tidegate.spark.session import session
    from tidegate.workload.cpu import cpu_series, read_cpu_series

    readings = cpu_series(seed=seed) if series is None else read_cpu_series(series)
    spark = session(f"local[{cores}]", "tidegate planetlab")
    rows: list[dict[str, Any]] = []
    interrupted = False
    try:
        for number in numbers:
            err.print(f"{number} queries, {seconds:g} s ...", highlight=False)
            found: Planetlab = run_planetlab(
                spark,
                readings,
                queries=number,
                seconds=seconds,
                target_s=target_s,
                shed=shedding,
                cores=cores,
                seed=seed,
            )
            rows.append(found.document())
    except KeyboardInterrupt:
        interrupted = True
    finally:
        spark.stop()
    _print_rows(rows, target_s, shedding, json)
    if interrupted:
        raise KeyboardInterrupt  # the command line ends with the code for it


def _print_rows(rows: list[dict[str, Any]], target_s: float, shedding: bool, json: bool) -> None:
    """Print the runs that were finished."""
    if json:
        print_json({"target_s": target_s, "shedding": shedding, "rows": rows})
        return
    columns = ("queries", "mean_latency_s", "last_latency_s", "offered", "kept", "shed")
    title = f"planetlab, target {target_s:g} s, {'shedding' if shedding else 'no shedding'}"
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*("" if row[name] is None else f"{row[name]:,}" for name in columns))
    out.print(table)


def _numbers(text: str) -> list[int]:
    """Parse numbers of queries, such as `20,100,200`."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise AskedWrongly(f"'{text}' are not numbers of queries; write them as 20,100,200")
    return numbers
