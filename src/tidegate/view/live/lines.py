"""A run while it happens, in plain lines: for a terminal that belongs to somebody's program."""

import re

from rich.console import Console
from rich.text import Text

from tidegate.control.record import Record
from tidegate.view.changes import again, changes_of, outcome_of, words_of

_NUMBER = re.compile(r"\d[\d.,]*")


class ChangeLines:
    """Prints a line for each change and each new note, and nothing for a tick that holds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._start_s: float | None = None
        self._wish: Record | None = None
        self._notes: frozenset[str] = frozenset()
        """The kinds of the last tick's notes."""
        self._said: list[str] = []
        """What others said here: a note that says the same is not printed again."""

    def show(self, record: Record) -> None:
        """Show one tick, if there is something new in it."""
        tick = record.measurement
        if self._start_s is None:
            self._start_s = tick.at_s - tick.interval_s
        at = f"{tick.at_s - self._start_s:.0f} s"
        for note in record.decision.notes:
            new = _kind(note) not in self._notes
            if new and not any(one.startswith(note) for one in self._said):
                self._print(f"{at}: {note}")
        self._notes = frozenset(map(_kind, record.decision.notes))
        if changes_of(record):
            if not again(self._wish, record):
                done = "" if record.acted else f" ({outcome_of(record)})"
                self._print(f"{at}: {words_of(record)}{done}: {record.decision.reason}")
            self._wish = record

    def say(self, sentence: str) -> None:
        """Print a sentence that is in no record."""
        self._said.append(sentence)
        self._print(sentence)

    def _print(self, sentence: str) -> None:
        self._console.print(Text(f"tidegate: {sentence}"), soft_wrap=True, highlight=False)


def _kind(note: str) -> str:
    """A note without its numbers, which change at every tick."""
    return _NUMBER.sub("", note)
