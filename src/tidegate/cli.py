"""The command line. Exits with 0, with 1 on failure, or with 2 on wrong usage; no tracebacks."""

import inspect
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

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
from tidegate.commands.reshard import reshard
from tidegate.commands.run import ARGUMENTS_ARE_ITS_OWN, run
from tidegate.commands.savepoint import savepoint
from tidegate.commands.simulate import simulate
from tidegate.commands.state import state
from tidegate.commands.whatif import whatif
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.logs import log_to_stderr

TRACEBACK = "TIDEGATE_TRACEBACK"
"""Set this environment variable to see the traceback of an unexpected error."""
STOPPED = 130
"""The exit code that typer ends with on Ctrl-C."""
BEGIN, LOOK = "Begin here", "Look at a run, while it goes on or later"
KEEP = "Keep state for years"
PLAN, MEASURE = "Plan ahead", "Ready-made applications and measurements"

app = typer.Typer(
    name="tidegate",
    help="Keeps a Spark streaming pipeline inside its latency target with as few cores as it can."
    "\n\nNew here? `tidegate demo` shows it in two minutes, and `tidegate COMMAND --help` says what"
    " a command is for, with an example.",
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
        typer.Option(
            "--verbose",
            help="Print Tidegate's log, with every decision and its reason, to standard error.",
        ),
    ] = False,
) -> None:
    """Options of every command."""
    if verbose:
        log_to_stderr()


def _add(name: str, command: Callable[..., None], panel: str, example: str, **more: Any) -> None:
    """Add a command to a group of the help, with a line to try."""
    text = f"{unwrapped(inspect.getdoc(command) or '')}\n\nExample:\n\n    {example}"
    app.command(name, help=text, rich_help_panel=panel, **more)(command)


def unwrapped(text: str) -> str:
    """A docstring with each paragraph on one line: the terminal breaks lines where it ends."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


_add("demo", demo, BEGIN, "tidegate demo --page")
_add(
    "run",
    run,
    BEGIN,
    "tidegate run --target 5s --executors 1:8 job.py clicks",
    context_settings=ARGUMENTS_ARE_ITS_OWN,
)
_add("explain", explain, LOOK, "tidegate explain clicks.ckpt")
_add("page", page, LOOK, "tidegate page clicks.ckpt")
_add("replay", replay, LOOK, "tidegate replay clicks.ckpt --target 5s")
_add("whatif", whatif, LOOK, "tidegate whatif clicks.ckpt --target 5s --cores 1:20")
_add("state", state, LOOK, "tidegate state clicks.ckpt per_key --limit 5")
_add("savepoint", savepoint, KEEP, "tidegate savepoint clicks.ckpt clicks-2026-11.savepoint")
_add("reshard", reshard, KEEP, "tidegate reshard clicks.ckpt 1024 --operator per_key")
_add("calibrate", calibrate, PLAN, "tidegate calibrate grep --stretch --counts 1,2,4")
_add("plan", plan, PLAN, "tidegate plan examples/vld.toml --cores 22")
_add(
    "simulate",
    simulate,
    PLAN,
    "tidegate simulate examples/vld.toml --allocation extract=10,match=11,aggregate=1",
)
_add("backtest", backtest, PLAN, "tidegate backtest worldcup-like --app grep --policy hpa")
_add("app", application, MEASURE, "tidegate app grep --stretch --seconds 60")
_add("bench", bench, MEASURE, "tidegate bench planner --quick", context_settings=FREE_OPTIONS)
_add("paper", paper, MEASURE, "tidegate paper drs table2 --quick")
_add("planetlab", planetlab, MEASURE, "tidegate planetlab --queries 20,200 --row-time 18us")


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else "no message"


def main() -> None:
    """The console entry point: turns errors into one sentence and an exit code."""
    try:
        app(prog_name="tidegate")  # else `python -m tidegate` shows that in its usage lines
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
