"""`tidegate state`: prints the state of a keyed operator, whether it runs or not."""

from typing import Annotated

import typer
from rich.table import Table

from tidegate.commands.output import Json, print_json, print_line, print_table
from tidegate.errors import AskedWrongly


def state(
    checkpoint: Annotated[str, typer.Argument(help="The checkpoint directory or URL.")],
    operator: Annotated[str, typer.Argument(help="The keyed operator's name.")],
    version: Annotated[
        int | None,
        typer.Option(help="The number of a committed micro-batch; by default the newest."),
    ] = None,
    limit: Annotated[int, typer.Option(help="Print at most this many rows; 0 for all.")] = 20,
    json: Json = False,
) -> None:
    """Print what a keyed operator remembers: its keys with their values, while it runs or later.

    They are those of the newest micro-batch that was committed, or of an earlier one that is still
    kept.
    """
    if limit < 0:
        raise AskedWrongly(f"--limit {limit}: give 0 for all rows, or a positive number")
    # Imported here because they take a second to import, which would slow down `--help`.
    import pyarrow as pa

    from tidegate.spark.state.read import read_state

    table = read_state(checkpoint, operator, version)
    shown = table if limit == 0 else table.slice(0, limit)
    if json:
        rows = [{k: _plain(v) for k, v in row.items()} for row in shown.to_pylist()]
        print_json({"operator": operator, "keys": table.num_rows, "rows": rows})
        return
    view = Table(title=f"{operator}: {table.num_rows:,} state rows")
    for name in table.column_names:
        numeric = pa.types.is_integer(table.schema.field(name).type) or pa.types.is_floating(
            table.schema.field(name).type
        )
        view.add_column(name, justify="right" if numeric else "left")
    for row in shown.to_pylist():
        view.add_row(*(str(_plain(value)) for value in row.values()))
    print_table(view)
    if shown.num_rows < table.num_rows:
        print_line(f"... {table.num_rows - shown.num_rows:,} more; --limit 0 prints all")


def _plain(value: object) -> object:
    """Convert a value to one that JSON can represent."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
