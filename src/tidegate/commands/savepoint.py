"""`tidegate savepoint`: copies a checkpoint to where nothing removes it."""

from typing import Annotated

import typer

from tidegate.commands.output import Json, print_json, print_line, progress


def savepoint(
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint directory or URL.")],
    target: Annotated[str, typer.Argument(help="A new directory or URL for the savepoint.")],
    version: Annotated[
        int | None,
        typer.Option(help="The number of a committed micro-batch that is kept; else the newest."),
    ] = None,
    json: Json = False,
) -> None:
    """Copy all that a pipeline needs to go on from its last committed micro-batch.

    The copy has offsets, plans, channels and state, each file with its checksum. Start from it with
    start(checkpoint=NEW, savepoint=TARGET), as often as you like. The pipeline may run meanwhile if
    it has one segment; for others, stop it or call run.savepoint(target) in its program.
    """
    # Imported here because it takes a second to import, which would slow down `--help`.
    from tidegate.spark.savepoint.make import make_savepoint

    with progress("savepoint") as shown:
        done = 0

        def expected(size: int) -> None:
            shown.progress.expect(done + size)

        def told(size: int) -> None:
            nonlocal done
            done += size
            shown.progress.reached(done, f"{done / 1e6:,.1f} MB of state")

        made = make_savepoint(checkpoint, target, version=version, expected=expected, told=told)
    if json:
        print_json(
            {
                "pipeline": made.pipeline,
                "savepoint": made.url,
                "batches": dict(made.batches),
                "files": len(made.files),
                "bytes": made.size_bytes,
            }
        )
        return
    after = ", ".join(
        f"batch {batch} of segment '{name}'" if batch >= 0 else f"no batch of segment '{name}'"
        for name, batch in made.batches.items()
    )
    print_line(
        f"{made.url}: pipeline '{made.pipeline}' after {after}; {len(made.files)} files, "
        f"{made.size_bytes / 1e6:,.1f} MB"
    )
