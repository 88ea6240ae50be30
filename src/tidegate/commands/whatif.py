"""`tidegate whatif`: what another target, other bounds or another load would have cost."""

from typing import Annotated

import typer

from tidegate.commands.checkpoint import read_checkpoint
from tidegate.commands.output import Json, err, print_json
from tidegate.commands.recorded_assembly import assembly_of_run, parse_bounds
from tidegate.errors import AskedWrongly
from tidegate.units import parse_duration


def whatif(
    checkpoint: Annotated[
        str, typer.Argument(help="The checkpoint directory of a run with a target.")
    ],
    target: Annotated[str | None, typer.Option(help="Another target, such as 5s.")] = None,
    cores: Annotated[
        str | None, typer.Option(help="Other bounds, FEWEST:MOST, such as 1:20.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="Another policy.")] = None,
    load: Annotated[
        str, typer.Option(help="So many times the recorded load, such as x1.5.")
    ] = "x1",
    run: Annotated[
        int, typer.Option(help="Which run of the checkpoint, from 1; 0 is the last one.")
    ] = 0,
    warm_up: Annotated[str, typer.Option(help="How much of the beginning is not judged.")] = "20s",
    seeds: Annotated[
        int, typer.Option(help="How often each case is simulated, with other noise.", min=0)
    ] = 0,
    json: Json = False,
) -> None:
    """Simulate a recorded run with another target, other cores, another policy or more load.

    The recorded load goes through the simulator, with the costs that were learned from the records
    and the same controller as on Spark. First the run is simulated as it was, and compared with
    what really happened: that is how far to trust the rest. The oracle is the least that any
    controller could have used, had it known the future.
    """
    # Imported here because it loads every policy and the simulator: `--help` should be quick.
    from tidegate.commands.whatif_answer import answer, print_answer
    from tidegate.control.replay import runs_of

    runs = runs_of(read_checkpoint(checkpoint).records)
    if not 0 <= run <= len(runs):
        raise AskedWrongly(f"--run {run}: this checkpoint has the records of {len(runs)} run(s)")
    records = runs[run - 1]
    bounds = parse_bounds(cores)
    as_it_was = assembly_of_run(records[0], None, None, None if records[0].assembly else bounds)
    asked = assembly_of_run(records[0], policy, target, bounds)
    found = answer(
        records,
        as_it_was,
        asked,
        load=_factor(load),
        warm_up_s=parse_duration(warm_up) if warm_up not in ("0", "0s") else 0.0,
        seeds=seeds or None,
        say=lambda text: err.print(f"tidegate: {text}", style="dim"),
    )
    if json:
        print_json(found.document())
    else:
        print_answer(found)


def _factor(text: str) -> float:
    """`x1.5` or `1.5` as a number."""
    try:
        factor = float(text.removeprefix("x"))
    except ValueError:
        factor = 0.0
    if not 0.0 < factor <= 1000.0:
        raise AskedWrongly(f"--load {text}: write a factor above 0, such as x1.5")
    return factor
