"""`tidegate whatif`: what another target, other bounds or another load would have cost."""

from typing import Annotated

import typer

from tidegate.commands.checkpoint import read_checkpoint
from tidegate.commands.output import Json, err, print_json, progress
from tidegate.commands.recorded_assembly import (
    Capacity,
    acting,
    assembly_of_run,
    first_known,
    parse_bounds,
)
from tidegate.errors import AskedWrongly
from tidegate.units import counted, parse_duration


def whatif(
    checkpoint: Annotated[
        str, typer.Argument(help="The checkpoint directory of a run with a target.")
    ],
    target: Annotated[str | None, typer.Option(help="Another target, such as 5s.")] = None,
    cores: Annotated[
        str | None, typer.Option(help="Other bounds, FEWEST:MOST, such as 1:20.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="Another policy.")] = None,
    capacity: Capacity = None,
    load: Annotated[
        str, typer.Option(help="How many times the recorded load, such as x1.5.")
    ] = "x1",
    run: Annotated[
        int, typer.Option(help="Which run of the checkpoint, from 1; 0 is the last one.")
    ] = 0,
    warm_up: Annotated[str, typer.Option(help="How much of the beginning is not judged.")] = "20s",
    seeds: Annotated[
        int,
        typer.Option(
            help="How often each case is simulated, each time with other random noise.",
            min=0,
            show_default="up to 8, fewer for a long run",
        ),
    ] = 0,
    json: Json = False,
) -> None:
    """Estimate what a recorded run would have cost with another target, other cores or more load.

    The recorded load goes through a simulator, with the costs that were learned from the records
    and the same controller as on Spark. First the run is simulated as it was, and compared with
    what really happened: so far the rest can be trusted. Of a dry run, it simulates what acting on
    its decisions would have done. The oracle beside it knows the future: it has the fewest cores
    with which every micro-batch is on time. For a pipeline with cuts it is an estimate.
    """
    # Imported here because it loads every policy and the simulator: `--help` should be quick.
    from tidegate.commands.whatif_answer import answer, print_answer
    from tidegate.control.replay import runs_of

    runs = runs_of(read_checkpoint(checkpoint).records)
    if not 0 <= run <= len(runs):
        has = counted(len(runs), "run")
        raise AskedWrongly(f"--run {run}: this checkpoint has the records of {has}")
    records = runs[run - 1]
    bounds, known = parse_bounds(cores), first_known(records)
    if known.assembly is None and bounds is not None:
        _say(
            "the options of this run are not on record; it is simulated as it was with the bounds"
            " of --cores and the default options, so its self-check may be off"
        )
    as_it_was = assembly_of_run(known, None, None, None if known.assembly else bounds)
    asked = acting(assembly_of_run(known, policy, target, bounds, capacity))
    factor = _factor(load)
    warm_up_s = parse_duration(warm_up) if warm_up not in ("0", "0s") else 0.0
    with progress("whatif") as shown:
        found = answer(
            records,
            as_it_was,
            asked,
            load=factor,
            warm_up_s=warm_up_s,
            seeds=seeds or None,
            progress=shown.progress,
        )
    if json:
        print_json(found.document())
    else:
        print_answer(found)


def _say(text: str) -> None:
    err.print(f"tidegate: {text}", style="dim", highlight=False, markup=False, soft_wrap=True)


def _factor(text: str) -> float:
    """`x1.5` or `1.5` as a number."""
    try:
        factor = float(text.removeprefix("x"))
    except ValueError:
        factor = 0.0
    if not 0.0 < factor <= 1000.0:
        raise AskedWrongly(f"--load {text}: write a factor above 0, such as x1.5")
    return factor
