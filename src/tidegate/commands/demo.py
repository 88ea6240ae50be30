"""`tidegate demo`: a real stream on Spark, measured, in half a minute."""

from typing import Annotated, Any

import typer
from rich.table import Table

from tidegate.commands.output import Json, err, out, print_json

_PARTS = {
    "offsets_s": "ask the source",
    "planning_s": "plan",
    "reading_s": "fetch",
    "work_s": "work",
    "log_s": "offset and commit logs",
    "other_s": "other",
}


def demo(
    seconds: Annotated[float, typer.Option(help="How long rows arrive.")] = 30.0,
    rate: Annotated[
        str, typer.Option(help="Rate profile, such as 500, sine:500+-400/20 or csv:FILE.")
    ] = "sine:1000+-800/15",
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    json: Json = False,
) -> None:
    """Run a stream with one Python stage on Spark, and watch its rate and latency."""
    # Imported here because Spark takes a second to import, and `tidegate --help` should not.
    from tidegate.apps.demo import Second, Summary, check_demo, run_demo
    from tidegate.spark.master import parse_master
    from tidegate.spark.session import session

    def show(second: Second) -> None:
        if second.batch is None or second.latency is None:
            err.print(f"{second.at_s:4d} s   no batch has ended yet", highlight=False)
            return
        batch, latency = second.batch, second.latency
        err.print(
            f"{second.at_s:4d} s {batch.arrival_rate:8,.0f} rows/s {second.rows:10,d} rows"
            f"   batch {batch.batch_id:3d}: {batch.rows:6,d} rows in {batch.duration_s:5.2f} s"
            f"   latency {latency.mean_s:5.2f} s, p95 {latency.p95_s:5.2f} s",
            highlight=False,
            soft_wrap=True,
        )

    check_demo(rate, seconds)
    parse_master(master)
    err.print(f"starting Spark on {master} ...", highlight=False, markup=False)
    spark = session(master, "tidegate demo")
    try:
        summary: Summary = run_demo(spark, rate, seconds, show)
    finally:
        spark.stop()
    document = _document(summary, rate, master)
    if json:
        print_json(document)
    else:
        out.print(_table(document))


def _document(summary: Any, rate: str, master: str) -> dict[str, Any]:
    latency, batches = summary.latency, summary.batches
    document: dict[str, Any] = {
        "master": master,
        "rate": rate,
        "seconds": summary.seconds,
        "arrived": summary.arrived,
        "rows": summary.rows,
        "batches": len(batches),
    }
    for name in ("mean", "p50", "p95", "p99"):
        value_s = getattr(latency, f"{name}_s") if latency is not None else None
        document[f"{name}_ms"] = None if value_s is None else round(value_s * 1000, 1)
    document["batch_ms"] = _mean_ms(batches, "duration_s")
    document["batch_parts_ms"] = {name[:-2]: _mean_ms(batches, name) for name in _PARTS}
    return document


def _mean_ms(batches: Any, name: str) -> float | None:
    if not batches:
        return None
    total_s: float = sum(getattr(batch, name) for batch in batches)
    return round(total_s / len(batches) * 1000, 1)


def _table(document: dict[str, Any]) -> Table:
    table = Table(title="tidegate demo", title_justify="left", show_header=False)
    table.add_column("what")
    table.add_column("value", justify="right")
    table.add_row("arrivals", f"{document['rate']} for {document['seconds']:g} s")
    table.add_row("rows arrived", f"{document['arrived']:,d}")
    table.add_row("rows processed", f"{document['rows']:,d}")
    table.add_row("batches", f"{document['batches']:,d}")
    table.add_section()
    for name, label in (("mean", "mean"), ("p50", "median"), ("p95", "p95"), ("p99", "p99")):
        table.add_row(f"latency, {label}", _milliseconds(document[f"{name}_ms"]))
    table.add_section()
    table.add_row("batch, mean", _milliseconds(document["batch_ms"]))
    for name, label in _PARTS.items():
        table.add_row(f"  {label}", _milliseconds(document["batch_parts_ms"][name[:-2]]))
    return table


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} ms"
