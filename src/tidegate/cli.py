"""The command line. Exits with 0, with 1 on failure, or with 2 on wrong usage; no tracebacks."""

import os
import sys
from typing import Annotated

import typer

from tidegate import __version__
from tidegate.commands.app import app as application
from tidegate.commands.backtest import backtest
from tidegate.commands.bench import FREE_OPTIONS, bench
from tidegate.commands.calibrate import calibrate
from tidegate.commands.demo import demo
from tidegate.commands.explain import explain
from tidegate.commands.output import complain, err, out
from tidegate.commands.page import page
from tidegate.commands.paper import paper
from tidegate.commands.plan import plan
from tidegate.commands.planetlab import planetlab
from tidegate.commands.replay import replay
from tidegate.commands.run import ARGUMENTS_ARE_ITS_OWN, run
from tidegate.commands.simulate import simulate
from tidegate.commands.state import state
from tidegate.commands.whatif import whatif
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.logs import log_to_stderr

TRACEBACK = "TIDEGATE_TRACEBACK"
"""Set this environment variable to see the traceback of an unexpected error."""
STOPPED = 130
"""The exit code that typer ends with on Ctrl-C."""

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
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", help="Print the log of Tidegate's loggers to standard error."),
    ] = False,
) -> None:
    """Options of every command."""
    if verbose:
        log_to_stderr()


app.command("demo")(demo)
app.command("run", context_settings=ARGUMENTS_ARE_ITS_OWN)(run)
app.command("app")(application)
app.command("bench", context_settings=FREE_OPTIONS)(bench)
app.command("calibrate")(calibrate)
app.command("plan")(plan)
app.command("simulate")(simulate)
app.command("state")(state)
app.command("explain")(explain)
app.command("page")(page)
app.command("replay")(replay)
app.command("whatif")(whatif)
app.command("backtest")(backtest)
app.command("paper")(paper)
app.command("planetlab")(planetlab)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else "no message"


def main() -> None:
    """The console entry point: turns errors into one sentence and an exit code."""
    try:
        app()
    except AskedWrongly as error:
        complain(error)
        sys.exit(2)
    except TidegateError as error:
        complain(error)
        sys.exit(1)
    except Exception as error:  # a bug here or in Spark: print its message, not its traceback
        if os.environ.get(TRACEBACK):
            raise
        what = f"{type(error).__name__}: {_first_line(error)}"
        complain(TidegateError(f"unexpected {what}; set {TRACEBACK}=1 to see the traceback"))
        sys.exit(1)
    except SystemExit as ended:
        if ended.code == STOPPED and ended.__class__ is SystemExit:  # not that of a program
            err.print("tidegate: stopped")
        raise
