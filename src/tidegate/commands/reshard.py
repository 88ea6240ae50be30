"""`tidegate reshard`: gives the operators of a stopped pipeline another number of shards."""

from typing import Annotated

import typer

from tidegate.commands.output import Json, print_json, print_line, progress


def reshard(
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint directory or URL.")],
    shards: Annotated[int, typer.Argument(help="The new number of shards.")],
    operator: Annotated[
        list[str] | None,
        typer.Option(help="A keyed operator; may be repeated. Without it, all of them."),
    ] = None,
    json: Json = False,
) -> None:
    """Rewrite the state of a stopped pipeline for another number of shards.

    More shards than tasks are needed to divide the load evenly, and they cannot change while the
    pipeline runs. New state is written beside the old one, which stays until the next start has
    committed some batches: if this is ended in the middle, nothing has changed. Then start the
    pipeline with shards=... in its program.
    """
    # Imported here because they take seconds to import, which would slow down `--help`.
    from tidegate.spark.batch.reshard import reshard as rewritten
    from tidegate.spark.hdfs.session import known_to
    from tidegate.spark.session import session
    from tidegate.spark.state.hash_of_keys import spark_hashes
    from tidegate.spark.state.location import location_of

    with progress("reshard") as shown:
        done = 0

        def told(rows: int) -> None:
            nonlocal done
            done += rows
            shown.progress.reached(done, f"{done:,} rows of state")

        shown.progress.doing("starting Spark, which hashes the keys")
        with session("local[*]", "tidegate reshard") as spark:
            changed = rewritten(
                known_to(spark, location_of(checkpoint)),
                dict.fromkeys(operator, shards) if operator else shards,
                spark_hashes(spark),
                expected=shown.progress.expect,
                told=told,
            )
    if json:
        found = [
            {"operator": one.operator, "before": one.before, "after": one.after, "rows": one.rows}
            for one in changed
        ]
        print_json({"checkpoint": checkpoint, "operators": found})
        return
    for one in changed:
        print_line(
            f"{one.operator}: {one.before} shards before, {one.after} now; {one.rows:,} rows of "
            "state rewritten"
        )
    if not changed:
        print_line(f"all operators have {shards} shards already; nothing was changed")
