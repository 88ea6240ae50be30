"""The output of all commands: results on standard output, progress on standard error."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.commands.table import fitted
from tidegate.view.live.progress import ShownProgress

out = Console()
"""For results."""
err = Console(stderr=True)
"""For progress and errors, so that `--json` prints one document and nothing else."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


def print_json(document: dict[str, Any]) -> None:
    """Print the one JSON document of a command."""
    print(json.dumps(document, indent=2, allow_nan=False))


def print_table(table: Table) -> None:
    """Print a table of results, so that it fits the terminal and no word is cut."""
    out.print(fitted(table, out))


def print_line(line: str) -> None:
    """Print a line of results as plain text: broken between words on a terminal, else whole."""
    out.print(Text(line), soft_wrap=not out.is_terminal)


def progress(name: str) -> ShownProgress:
    """How far a long command is, on standard error: with it, nothing comes between the results."""
    return ShownProgress(err, name)


def complain(error: Exception) -> None:
    """Print one sentence about an error, as plain text: `[...]` in it is not markup."""
    err.print(Text.assemble(("tidegate: ", "red"), str(error)), soft_wrap=True)
