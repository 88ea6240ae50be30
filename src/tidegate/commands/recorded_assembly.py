"""What the controller of a recorded run was built from, changed as a person asks."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds, parse_span
from tidegate.control.names import policy_name
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.models.capacity.measured import read_capacity
from tidegate.units import parse_duration

Capacity = Annotated[
    Path | None,
    typer.Option(
        help="A file that tidegate calibrate has written, for the policies mst-0 to mst-7 and"
        " priced-capacity."
    ),
]


def assembly_of_run(
    first: Record,
    policy: str | None,
    target: str | None,
    bounds: Bounds | None,
    capacity: Path | None = None,
) -> Assembly:
    """The assembly of the run, by a record that tells it, changed as asked.

    `capacity` is a file of what the pipeline was measured to process.
    """
    if first.assembly is not None:
        made = Assembly.of(first.assembly)
    elif bounds is None:
        raise AskedWrongly(
            "the first record of this run is missing or was written by an older Tidegate, so its"
            " options are unknown; give its bounds with --cores FEWEST:MOST"
        )
    else:
        made = Assembly(
            target=Target(first.target_s or 1.0), bounds=bounds, policy=policy_name(first.policy)
        )
    # All at once: a policy's options may hold for the new target alone.
    return dataclasses.replace(
        made,
        bounds=made.bounds if bounds is None else bounds,
        policy=made.policy if policy is None else policy_name(policy),
        capacity=made.capacity if capacity is None else read_capacity(capacity),
        target=made.target
        if target is None
        else Target(parse_duration(target), made.target.percentile),
    )


def first_known(records: Sequence[Record]) -> Record:
    """The first record of a run that tells its options; if none does, the first of all."""
    return next((one for one in records if one.assembly is not None), records[0])


def acting(made: Assembly) -> Assembly:
    """The same, but its decisions are acted on: a dry run shows nothing of what they would do."""
    return dataclasses.replace(made, limits=dataclasses.replace(made.limits, dry_run=False))


def parse_bounds(text: str | None) -> Bounds | None:
    """The bounds that were written as FEWEST:MOST; None if nothing was written."""
    if text is None:
        return None
    return Bounds(*parse_span("--cores", text))
