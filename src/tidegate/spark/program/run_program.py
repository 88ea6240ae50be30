"""Runs a program with Tidegate attached, and ends as the program ends."""

import atexit
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tidegate.control.rehearsal import rehearse
from tidegate.spark.loop.attach import Attachment
from tidegate.spark.program.attacher import Attacher, Refused
from tidegate.spark.program.ending import ProgramEnded, end_of, prepare_end
from tidegate.spark.program.hooks import listen
from tidegate.spark.program.launch import prepare_launch
from tidegate.spark.program.script import run_script
from tidegate.spark.program.settings import ProgramSettings, require_records, trial_assembly


def run_program(
    settings: ProgramSettings,
    *,
    say: Callable[[str], None],
    on_attached: Callable[[Attachment], None],
    on_end: Callable[[list[Attachment]], None],
) -> NoReturn:
    """Run the program in this process, whose `__main__` it becomes.

    `say` takes sentences for the user. `on_end` is called when everything of the program is over:
    threads that Python waits for, and functions that the program registered for the exit.
    """
    require_records(settings.records)
    prepare_end()
    directory = Path(tempfile.mkdtemp(prefix="tidegate-run-"))
    atexit.register(_remove, directory, os.getpid())
    prepare_launch(settings, directory)
    attacher = Attacher(settings, say=say, on_attached=on_attached)
    atexit.register(_end, attacher, on_end, os.getpid())
    listen(attacher)
    # The models are compiled and loaded while Spark starts, not when the first batch has ended.
    trial = trial_assembly(settings.attach)
    threading.Thread(target=rehearse, args=(trial,), name="tidegate-trial", daemon=True).start()
    try:
        run_script(settings.script, settings.arguments)
    except Refused as refusal:
        atexit.unregister(_end)  # there is nothing to sum up
        attacher.stop()
        raise refusal.error from None
    except BaseException as error:
        end_of(error)
    raise ProgramEnded(0)


def _end(attacher: Attacher, on_end: Callable[[list[Attachment]], None], owner: int) -> None:
    """At exit, before Spark's JVM goes down; a forked child has nothing to end."""
    if os.getpid() == owner:
        attacher.stop()
        on_end(attacher.attachments)


def _remove(directory: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)
