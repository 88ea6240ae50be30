"""`tidegate explain`: what limited a run, what was decided, what it did, and how that looks now."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from tidegate.commands.checkpoint import read_checkpoint
from tidegate.commands.output import Json, err, out, print_json
from tidegate.control.record import Record
from tidegate.view.explanation import Explanation
from tidegate.view.flow_tree import flow_tree

SPANS = 40
"""How many spans are printed; the longest ones are chosen."""
SEGMENTS = 12
"""How many segments or queries are printed; the slowest ones are chosen."""
WRONG = 30
"""How many wrong decisions are printed; the first ones are chosen."""


def explain(
    checkpoint: Annotated[
        str, typer.Argument(help="The checkpoint, or the directory of records, of a run.")
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
    """Show what limited a run, what was decided, what that did, and what was wrong in hindsight.

    Of a pipeline it names the operator that was full; of queries that run under `attach` or
    `tidegate run`, the slowest query and what its batches' time went to. In hindsight: how many
    cores would have been enough for the load that came, what the others were for, and which
    decisions were too early, too late or without need.
    """
    reading = read_checkpoint(checkpoint)
    told = _explained(reading.records, at)
    if html is not None:
        from tidegate.view.pages.explain import write_page

        write_page(reading.records, told, html, f"Run of {checkpoint}", reading.left_out)
        err.print(Text(f"{html} written"), soft_wrap=True)
    if json:
        print_json({**told.document(), "left_out": list(reading.left_out)})
        return
    _print(told)


def _explained(records: Sequence[Record], at: float | None) -> Explanation:
    """Explain the records, with a bar on a terminal: a long run takes a while."""
    # Imported here because scipy takes a second to import, and `tidegate --help` should not.
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from tidegate.commands.oracle import best_of
    from tidegate.view.explain import explain as explained

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    ) as progress:
        task = progress.add_task("looking back at the ticks", total=len(records))
        found = explained(records, at, watch=lambda: progress.advance(task))
        progress.update(task, description="what the oracle needs", total=None)
        return found.with_best(best_of(records))


def _print(told: Explanation) -> None:
    _say(told.headline)
    _say(told.cores.words)
    for one in told.batches[:SEGMENTS]:
        _say(" ".join(one.sentences))
    if len(told.batches) > SEGMENTS:
        _say(f"... and {len(told.batches) - SEGMENTS:,} that were faster; --json has all")
    _say(told.fetching)
    _say(told.lag)
    for what, seconds in told.source_limits:
        _say(f"At the source, for {seconds:,.0f} s: {what}.")
    for what, seconds in told.executors:
        _say(f"For {seconds:,.0f} s: {what}.")
    if told.spans:
        out.print(_fullest(told))
    left = len(told.spans) - SPANS
    if left > 0:
        _say(f"... and {left:,} shorter spans; --json has all")
    for moment in told.networks:
        _say(moment.headline)
        out.print(flow_tree(moment.graph))
    out.print(_changes(told) if told.steps else Text("No change was decided."))
    _print_hindsight(told)


def _say(sentence: str) -> None:
    """Print a sentence, wrapped at spaces; nothing if it is empty."""
    if sentence:
        out.print(Text(sentence))


def _fullest(told: Explanation) -> Table:
    table = Table(
        title="The fullest operator",
        title_justify="left",
        caption="load: rows that come to it, of those that its tasks can process. with one more:"
        " what the pipeline could process more with one more task of it. limiting: for how long"
        " the load was 85% or more.",
        caption_justify="left",
    )
    labels = ("seconds", "operator", "tasks", "load", "peak", "with one more", "limiting")
    for label in labels:
        left = label == "operator"
        # Names and headings may be broken; a number that was broken could not be read.
        table.add_column(label, justify="left" if left else "right", overflow="fold", no_wrap=False)
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


def _print_hindsight(told: Explanation) -> None:
    from tidegate.view.hindsight import words

    found = told.hindsight
    out.print(Text("In hindsight", style="bold"))
    for sentence in words.sentences(found):
        _say(sentence)
    above = words.above_rows(found)
    if above:
        out.print(
            _rows("Core-seconds above enough, and why", words.ABOVE_LABELS, above, numbers=(0, 1))
        )
    wrong = words.wrong_rows(found)
    if wrong:
        out.print(
            _rows("Decisions that were wrong", words.WRONG_LABELS, wrong[:WRONG], numbers=(0,))
        )
    if len(wrong) > WRONG:
        _say(f"... and {len(wrong) - WRONG:,} more; --json has all")


def _rows(
    title: str,
    labels: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[int],
) -> Table:
    table = Table(title=title, title_justify="left")
    for place, label in enumerate(labels):
        table.add_column(label, justify="right" if place in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table
