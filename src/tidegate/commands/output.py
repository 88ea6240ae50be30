"""How every command speaks: JSON or a table on standard output, progress on standard error."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

out = Console()
"""For the answer."""
err = Console(stderr=True)
"""For progress and errors, so that `--json` prints one document and nothing else."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


def print_json(document: dict[str, Any]) -> None:
    """The one JSON document of a command."""
    print(json.dumps(document, indent=2, allow_nan=False))


def complain(error: Exception) -> None:
    """One sentence about what went wrong; as text, because `[...]` in it is not a colour."""
    err.print(Text.assemble(("tidegate: ", "red"), str(error)), soft_wrap=True)
