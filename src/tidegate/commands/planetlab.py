"""`tidegate planetlab`: more and more queries over one stream, held to a latency by shedding."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from rich.table import Table

from tidegate.apps.planetlab.options import query_numbers
from tidegate.commands.output import Json, print_json, print_line, print_table, progress
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.units import format_duration, format_share, parse_duration
from tidegate.view.figures import only_finite

_COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "queries": ("queries", lambda value: f"{value:,}"),
    "mean_latency_s": ("mean latency", format_duration),
    "last_latency_s": ("latency at the end", format_duration),
    "kept_share": ("rows kept", format_share),
    "cpu_percent": ("CPU", lambda value: f"{value:.0f} %"),
    "offered": ("rows offered", lambda value: f"{value:,}"),
    "shed": ("dropped", lambda value: f"{value:,}"),
    "verified": ("answers", lambda value: "right" if value else "WRONG"),
}
"""The values that are shown, with their headings, and how each is written."""


def planetlab(
    queries: Annotated[
        str, typer.Option(help="How many queries ask at once, with one run for each number.")
    ] = "20,100,200",
    target: Annotated[
        str, typer.Option(help="The mean time to keep, from a row's arrival to its results.")
    ] = "2s",
    seconds: Annotated[
        float, typer.Option(help="How long each run takes; the first ten are not judged.")
    ] = 60.0,
    series: Annotated[
        str | None,
        typer.Option(help="CSV of CPU use (sample,node0,...); by default it is generated."),
    ] = None,
    row_time: Annotated[
        str | None,
        typer.Option(
            help="Let a row take this long in each query, by waiting. With 18us, two cores keep up"
            " with about 90 queries; without it, with about a thousand."
        ),
    ] = None,
    shedding: Annotated[
        bool,
        typer.Option(help="Whether rows may be dropped; if not, the target is missed."),
    ] = True,
    cores: Annotated[int, typer.Option(help="Cores that the queries share.")] = 2,
    seed: Annotated[int, typer.Option(help="Seed of the generated series and keys.")] = 1,
    json: Json = False,
) -> None:
    """Watch rows being dropped, just as many as needed to keep too much work on time.

    Ten computers report their CPU use, each 50, 100, 150 and again 100 times a second for ten
    seconds. Every query averages all of it, so more queries are more work for each row. When it is
    more than the machine can do, rows are dropped at random before the queries see them, and the
    mean latency stays at the target. Dropped rows are counted, and all answers are checked against
    the rows that were kept; it fails if one is wrong. The load is that of a research paper on
    overload, whose data came from PlanetLab, a network of computers for research.
    """
    numbers = query_numbers(queries)
    target_s = parse_duration(target)
    row_s = None if row_time is None else parse_duration(row_time)
    if not 5.0 <= seconds <= 86_400.0:
        raise AskedWrongly(f"runs of {seconds:g} seconds are not possible; give 5 to 86400 (a day)")
    if cores < 1:
        raise AskedWrongly(f"{cores} cores are not possible; give 1 or more")
    # Imported here because Spark takes a second to import, which would slow down `--help`.
    from tidegate.apps.planetlab.outcome import Planetlab
    from tidegate.apps.planetlab.run import run_planetlab
    from tidegate.spark.session import session
    from tidegate.workload.cpu import cpu_series, read_cpu_series

    readings = cpu_series(seed=seed) if series is None else read_cpu_series(series)
    spark = session(f"local[{cores}]", "tidegate planetlab")
    rows: list[dict[str, Any]] = []
    interrupted = False
    try:
        with progress("planetlab") as shown:
            shown.progress.expect(len(numbers), takes_s=len(numbers) * seconds)
            for number in numbers:
                shown.progress.step(f"{number} queries for {seconds:g} s")
                found: Planetlab = run_planetlab(
                    spark,
                    readings,
                    queries=number,
                    seconds=seconds,
                    target_s=target_s,
                    shed=shedding,
                    cores=cores,
                    seed=seed,
                    row_s=row_s,
                )
                rows.append(only_finite(found.document()))
    except KeyboardInterrupt:
        interrupted = True
    finally:
        spark.stop()
    _print_rows(rows, target_s, shedding, json)
    if interrupted:
        raise KeyboardInterrupt  # the command line ends with the code for it
    wrong = [str(row["queries"]) for row in rows if not row["verified"]]
    if wrong:
        raise TidegateError(f"the answers of the runs with {', '.join(wrong)} queries are wrong")


def _print_rows(rows: list[dict[str, Any]], target_s: float, shedding: bool, json: bool) -> None:
    """Print the runs that were finished."""
    if json:
        print_json({"target_s": target_s, "shedding": shedding, "rows": rows})
        return
    how = "rows may be dropped" if shedding else "no row is dropped"
    title = f"planetlab, target {format_duration(target_s)}, {how}"
    headings = [heading for heading, _ in _COLUMNS.values()]
    table = Table(*headings, title=title, title_justify="left")
    for row in rows:
        cells = [
            "" if row[name] is None else written(row[name])
            for name, (_, written) in _COLUMNS.items()
        ]
        table.add_row(*cells)
    print_table(table)
    for row in rows:
        said = f"{row['queries']} queries: {row['verdict']}"
        print_line(said)
