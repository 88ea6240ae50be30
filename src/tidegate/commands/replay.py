"""`tidegate replay`: decides a recorded run again, with the same or another policy or target."""

import dataclasses
import itertools
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tidegate.commands.checkpoint import read_checkpoint
from tidegate.commands.output import Json, print_json, print_line, print_table, progress
from tidegate.commands.recorded_assembly import Capacity, assembly_of_run, parse_bounds
from tidegate.control.decision import Decision
from tidegate.view.changes import words_of

if TYPE_CHECKING:
    from tidegate.control.replay import Replayed

ROWS = 60
"""How many ticks are printed."""


def replay(
    checkpoint: Annotated[
        str, typer.Argument(help="The checkpoint directory of a run with a target.")
    ],
    policy: Annotated[
        str | None, typer.Option(help="Decide by another policy on the same measurements.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Decide for another target, such as 5s.")
    ] = None,
    cores: Annotated[
        str | None, typer.Option(help="Decide within other bounds, FEWEST:MOST, such as 1:20.")
    ] = None,
    capacity: Capacity = None,
    json: Json = False,
) -> None:
    """Show what another policy, target or range of cores would have decided in a recorded run.

    It is given the measurements of the real run, tick by tick, and both decisions are shown where
    they differ. What its decisions would have led to is not known here; tidegate whatif simulates
    that. Without options the decisions are the recorded ones: the same measurements always give the
    same decision.
    """
    # Imported here because it loads every policy, which would slow down `tidegate --help`.
    from tidegate.control.replay import replay_runs

    reading = read_checkpoint(checkpoint)
    with progress("replay") as shown:
        ticks = itertools.count(1)
        shown.progress.expect(len(reading.records))
        shown.progress.doing(f"{len(reading.records):,} ticks")
        runs = replay_runs(
            reading.records,
            lambda first: assembly_of_run(first, policy, target, parse_bounds(cores), capacity),
            lambda: shown.progress.reached(next(ticks)),
        )
    document = _document(runs)
    if json:
        print_json({**document, "left_out": list(reading.left_out)})
        return
    for number, run in enumerate(runs, start=1):
        _print(number, len(runs), run)


def _document(runs: "list[list[Replayed]]") -> dict[str, Any]:
    return {
        "runs": [
            {
                "ticks": len(run),
                "same": sum(one.same for one in run),
                "differ": [
                    {
                        "tick": one.record.tick,
                        "at_s": one.record.measurement.at_s,
                        "recorded": _plain(one.record.decision),
                        "replayed": _plain(one.decision),
                    }
                    for one in run
                    if not one.same
                ],
            }
            for run in runs
        ]
    }


def _plain(decision: Decision) -> dict[str, Any]:
    return {
        "cores": decision.cores,
        "tasks": dict(decision.tasks),
        "shards_moved": sum(len(moves) for moves in decision.moves.values()),
        "keep": decision.keep,
        "reason": decision.reason,
    }


def _print(number: int, of: int, run: "list[Replayed]") -> None:
    begin_s = run[0].record.measurement.at_s
    differing = [one for one in run if not one.same]
    which = f"run {number} of {of}: " if of > 1 else ""
    same = f"{which}{len(run):,} ticks, {len(run) - len(differing):,} with the same decision"
    print_line(same)
    if not differing:
        return
    table = Table(title="Where they differ", title_justify="left", show_lines=True)
    table.add_column("second", justify="right", no_wrap=True)
    table.add_column("recorded")
    table.add_column("replayed")
    for one in differing[:ROWS]:
        again = dataclasses.replace(one.record, decision=one.decision)
        table.add_row(
            f"{one.record.measurement.at_s - begin_s:,.0f}",
            Text(f"{words_of(one.record)}: {one.record.decision.reason}"),
            Text(f"{words_of(again)}: {one.decision.reason}"),
        )
    print_table(table)
    if len(differing) > ROWS:
        print_line(f"... and {len(differing) - ROWS:,} more; --json prints all")
