"""`tidegate page`: the live page of a run of another process, or of one that is over."""

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.commands.checkpoint import records_place, tell_left_out
from tidegate.commands.output import err
from tidegate.recording import FollowedRecords

if TYPE_CHECKING:
    from tidegate.view.live.page.shared import PlaceOnPage

DEFAULT_PORT = 8787
_LOOK_EVERY_S = 0.5


def page(
    checkpoints: Annotated[
        list[str],
        typer.Argument(
            metavar="CHECKPOINT...",
            help="The checkpoint directories of runs with a target, or `records` of an attachment.",
        ),
    ],
    port: Annotated[
        int, typer.Option(help="Where to listen; 0 takes any free port.")
    ] = DEFAULT_PORT,
    host: Annotated[
        str,
        typer.Option(help="The address to listen on; other machines' browsers need a token."),
    ] = "127.0.0.1",
) -> None:
    """Show a run in a browser: latency, load, cores and decisions, followed while it goes on.

    The page is made from the records in the checkpoint, so the run may be in another process, on
    another machine, or over. Prometheus finds the same numbers at /metrics. Ctrl-C ends it.
    """
    # Imported here because it loads the page, which other commands do without.
    from tidegate.commands.page_oracle import FollowedOracle, keep_oracles

    followed = {}
    for checkpoint in checkpoints:
        followed[checkpoint] = FollowedRecords(records_place(checkpoint))
    readings = {checkpoint: one.all() for checkpoint, one in followed.items()}
    places: dict[str, PlaceOnPage] = {}
    for checkpoint, reading in readings.items():
        tell_left_out(reading.left_out)
        place = places[checkpoint] = open_page(
            f"{host}:{port}", _name(checkpoint), quiet=bool(places)
        )
        for record in reading.records:
            place.feed.add(record)
    oracles = {
        checkpoint: FollowedOracle(place.feed, readings[checkpoint].records)
        for checkpoint, place in places.items()
    }
    readings.clear()
    pause = threading.Event()
    keep_oracles(list(oracles.values()), pause)
    while not pause.wait(_LOOK_EVERY_S):
        for checkpoint, place in places.items():
            for record in followed[checkpoint].fresh():
                place.feed.add(record)
                oracles[checkpoint].add(record)


def open_page(asked: int | str, name: str, *, quiet: bool = False) -> "PlaceOnPage":
    """Put a pipeline on a page, and say where the page is."""
    # Imported here because the metrics and the page are needed by few commands.
    from tidegate.view.live.page.shared import place_on_page

    place = place_on_page(asked, name)
    if not quiet:
        err.print(f"live page: {place.page.url}", highlight=False, markup=False, soft_wrap=True)
    return place


def stay(place: "PlaceOnPage") -> None:
    """Let the page of a run that is over be looked at, until Ctrl-C."""
    err.print(
        f"the live page stays at {place.page.url}; Ctrl-C ends it",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    with suppress(KeyboardInterrupt):
        while True:
            threading.Event().wait(_LOOK_EVERY_S)


def _name(checkpoint: str) -> str:
    return checkpoint.rstrip("/").rsplit("/", 1)[-1] or checkpoint
