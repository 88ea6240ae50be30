"""`tidegate explain`: where a run was limited, what was decided, and what the decisions did."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from tidegate.commands.checkpoint import read_checkpoint
from tidegate.commands.output import Json, err, out, print_json
from tidegate.view.explanation import Explanation
from tidegate.view.flow_tree import flow_tree

SPANS = 40
"""How many spans are printed; the longest ones are chosen."""


def explain(
    checkpoint: Annotated[
        str, typer.Argument(help="The checkpoint directory of a run with a target.")
    ],
    html: Annotated[
        Path | None, typer.Option(help="Write a page with charts to this file as well.")
    ] = None,
    at: Annotated[
        float | None,
        typer.Option(
            help="Draw the flow network at this second of the run; without it, where it was"
            " fullest."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show where the bottleneck of a run was, what was decided, and what the decisions did."""
    # Imported here because scipy takes a second to import, and `tidegate --help` should not.
    from tidegate.view.explain import explain as explained

    reading = read_checkpoint(checkpoint)
    told = explained(reading.records, at)
    if html is not None:
        from tidegate.view.pages.explain import write_page

        write_page(reading.records, html, f"Run of {checkpoint}", reading.left_out, at)
        err.print(Text(f"{html} written"), soft_wrap=True)
    if json:
        print_json({**told.document(), "left_out": list(reading.left_out)})
        return
    _print(told)


def _print(told: Explanation) -> None:
    out.print(Text(told.headline), soft_wrap=True)
    if told.fetching:
        out.print(Text(told.fetching), soft_wrap=True)
    if told.lag:
        out.print(Text(told.lag), soft_wrap=True)
    for what, seconds in told.source_limits:
        out.print(Text(f"At the source, for {seconds:,.0f} s: {what}."), soft_wrap=True)
    if told.spans:
        out.print(_bottlenecks(told))
    left = len(told.spans) - SPANS
    if left > 0:
        out.print(f"... and {left:,} shorter spans; --json has all")
    for moment in told.networks:
        out.print(Text(moment.headline), soft_wrap=True)
        out.print(flow_tree(moment.graph))
    out.print(_changes(told) if told.steps else Text("No change was needed."))


def _bottlenecks(told: Explanation) -> Table:
    table = Table(title="Where the bottleneck was", title_justify="left")
    for label in ("seconds", "operator", "tasks", "mean load", "peak", "one more", "limiting"):
        left = label == "operator"
        table.add_column(label, justify="left" if left else "right", no_wrap=not left)
    longest = sorted(told.spans, key=lambda span: -span.seconds)[:SPANS]
    for span in sorted(longest, key=lambda span: span.begin_s):
        tasks = f"{span.least_tasks}"
        if span.most_tasks != span.least_tasks:
            tasks += f" to {span.most_tasks}"
        table.add_row(
            f"{span.begin_s:,.0f} to {span.end_s:,.0f}",
            Text(span.operator),
            tasks,
            f"{span.load:.0%}",
            f"{span.peak_load:.0%}",
            f"+{span.gain:.0%}",
            f"{span.limiting_s:,.0f} s",
        )
    return table


def _changes(told: Explanation) -> Table:
    table = Table(title="What was decided, and what it did", title_justify="left", show_lines=True)
    table.add_column("second", justify="right", no_wrap=True)
    table.add_column("decision")
    table.add_column("what it did")
    for step in told.steps:
        words = Text.assemble(
            (step.what, "bold" if step.acted else ""),
            "" if step.acted else f" ({step.outcome})",
            f": {step.why}",
        )
        table.add_row(f"{step.at_s:,.0f}", words, Text(step.came))
    return table
