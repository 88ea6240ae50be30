"""The command line: exits 0, 1 (it failed) or 2 (it was asked wrongly), never with a traceback."""

import os
import sys
from typing import Annotated

import typer

from tidegate import __version__
from tidegate.commands.backtest import backtest
from tidegate.commands.bench import FREE_OPTIONS, bench
from tidegate.commands.demo import demo
from tidegate.commands.explain import explain
from tidegate.commands.output import complain, err, out
from tidegate.commands.plan import plan
from tidegate.commands.planetlab import planetlab
from tidegate.commands.replay import replay
from tidegate.commands.simulate import simulate
from tidegate.commands.state import state
from tidegate.errors import AskedWrongly, TidegateError

TRACEBACK = "TIDEGATE_TRACEBACK"
"""Set it to see where an unexpected error came from."""

app = typer.Typer(
    name="tidegate",
    help="Keeps a Spark streaming pipeline inside its latency target with as few cores as it can.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        out.print(f"tidegate {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="And exit.")
    ] = False,
) -> None:
    """Options of every command."""


app.command("demo")(demo)
app.command("bench", context_settings=FREE_OPTIONS)(bench)
app.command("plan")(plan)
app.command("simulate")(simulate)
app.command("state")(state)
app.command("explain")(explain)
app.command("replay")(replay)
app.command("backtest")(backtest)
app.command("planetlab")(planetlab)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else "it said nothing more"


def main() -> None:
    """The console entry point: turns our errors into one sentence and an exit code."""
    try:
        app()
    except AskedWrongly as error:
        complain(error)
        sys.exit(2)
    except TidegateError as error:
        complain(error)
        sys.exit(1)
    except Exception as error:  # a fault of ours or of Spark's: what it says, not the way to it
        if os.environ.get(TRACEBACK):
            raise
        what = f"{type(error).__name__}: {_first_line(error)}"
        complain(TidegateError(f"it failed with {what}; set {TRACEBACK}=1 to see where"))
        sys.exit(1)
    except KeyboardInterrupt:
        err.print("tidegate: stopped")
        sys.exit(130)
