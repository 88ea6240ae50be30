"""`tidegate run`: runs somebody's PySpark program as it is, and keeps its queries to a target."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import tidegate
from tidegate.commands.option_flags import takes_flags
from tidegate.commands.table import fitted
from tidegate.spark.options import ProgramOptions, declared

if TYPE_CHECKING:
    from tidegate.spark.loop.attach import Attachment
    from tidegate.spark.program.settings import ProgramSettings
    from tidegate.view.live.lines import ChangeLines

ARGUMENTS_ARE_ITS_OWN = {"allow_interspersed_args": False}
"""For the parser: what comes after the script belongs to the script."""


def _print_submit_path(asked: bool) -> None:
    if asked:
        print(Path(tidegate.__file__).with_name("submit.py"))
        raise typer.Exit


@takes_flags(
    ProgramOptions,
    target="The latency to keep, such as 5s; needed, here or in the file of --config.",
    records="The directory to write records to; without it, out/run/SCRIPT.",
)
def run(
    script: Annotated[
        Path, typer.Argument(metavar="SCRIPT.py", help="A PySpark program, as it is.")
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGS]...", help="The program's own arguments.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file with the same options, such as dry_run = true; flags win over it."
            " What changes there while the program runs is taken over.",
            show_default=False,
        ),
    ] = None,
    submit_path: Annotated[
        bool,
        typer.Option(
            "--submit-path",
            callback=_print_submit_path,
            is_eager=True,
            help="Print the path of the script to give to spark-submit instead, and exit.",
        ),
    ] = False,
    **options: Any,
) -> None:
    """Run a PySpark program as it is, and keep its streaming queries within a latency target.

    Tidegate watches all streaming queries of the program, and asks Spark for more or fewer
    executors. Output, errors and exit code are the program's own. What Tidegate says goes to
    standard error, and what it measured and decided to out/run/SCRIPT, for tidegate explain and
    tidegate page. With --dry-run it only says what it would do.
    """
    # Imported here because Spark takes a second to import, which would slow down `--help`.
    from tidegate.spark.program.config_file import ConfigFile, over
    from tidegate.spark.program.config_watch import Config
    from tidegate.spark.program.option_text import option_value
    from tidegate.spark.program.settings import settle

    known = declared(ProgramOptions)
    flags = {
        name: None if text is None else option_value(known[name], text)
        for name, text in options.items()
    }
    if config is None:
        _run(settle(script, tuple(arguments or ()), over(flags, {})))
        return
    given = over(flags, ConfigFile(config).options())
    watched = ConfigFile(config.absolute())  # the program may change its working directory
    _run(settle(script, tuple(arguments or ()), given, Config(watched, flags, given)))


def _run(settings: "ProgramSettings") -> None:
    from tidegate.spark.program.run_program import run_program
    from tidegate.view.live.lines import ChangeLines

    console = Console(stderr=True, quiet=settings.quiet)
    lines = ChangeLines(console)
    run_program(
        settings,
        say=lines.say,
        on_attached=lambda attachment: attachment.watchers.append(lines.show),
        on_end=lambda attachments: _tell(settings, attachments, lines, console),
    )


def _tell(
    settings: "ProgramSettings",
    attachments: "list[Attachment]",
    lines: "ChangeLines",
    console: Console,
) -> None:
    """The summary at the end, beside the program's output."""
    from tidegate.view.summary import summarise

    if not attachments:
        lines.say("the program started no Spark session, so nothing was attached")
        return
    measured = [
        records
        for records in (list(one.records) for one in attachments)
        if any(record.measurement.segments for record in records)
    ]
    for records in measured:
        summary = summarise(records)
        table = summary.table(f"tidegate run {settings.script.name}")
        console.print(fitted(table, console))
        lines.say(summary.headline)
    if measured:
        lines.say(
            f"what was measured and decided is in {settings.records}; tidegate explain and tidegate"
            " page show it"
        )
    else:
        lines.say("no streaming query ran for as long as a tick, so nothing was measured")
