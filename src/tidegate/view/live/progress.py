"""The progress of a long piece of work: a bar on a terminal, a line now and then anywhere else."""

import threading
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tidegate.progress import Progress

FIRST_LINE_S = 5.0
"""Work that is over sooner says nothing in a file or a pipe."""
LINE_EVERY_S = 20.0
_REDRAWN_A_SECOND = 2.0
_BAR = 30


class ShownProgress:
    """Shows how far some work is; use it as a context manager around the work.

    The work tells the `progress` that this returns. The bar disappears when the work is over.
    """

    def __init__(
        self,
        console: Console,
        name: str,
        progress: Progress | None = None,
        *,
        first_line_s: float = FIRST_LINE_S,
        line_every_s: float = LINE_EVERY_S,
    ) -> None:
        self.progress = progress or Progress()
        self._console = console
        self._name = name
        self._first_line_s, self._line_every_s = first_line_s, line_every_s
        self._live: Live | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(
                get_renderable=self.picture,
                console=self._console,
                refresh_per_second=_REDRAWN_A_SECOND,
                transient=True,
                redirect_stdout=False,
            )
            self._live.start()
        else:
            self._thread = threading.Thread(target=self._say_lines, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._live is not None:
            self._live.stop()
        if self._thread is not None:
            self._thread.join()

    def say(self, line: str) -> None:
        """Print a line that stays, above the bar."""
        self._console.print(line, highlight=False, markup=False)

    def picture(self) -> RenderableType:
        """What is drawn on a terminal: what is done, and the bar below it."""
        now = self.progress.how_far()
        row = Table.grid(padding=(0, 1))
        row.add_row(
            ProgressBar(
                total=1.0,
                completed=now.share or 0.0,
                width=_BAR,
                pulse=now.share is None,
                animation_time=now.elapsed_s,
            ),
            Text(now.words),
        )
        return Group(Text(f"{self._name}: {now.what}" if now.what else self._name), row)

    def line(self) -> str:
        """What is printed anywhere else."""
        now = self.progress.how_far()
        doing = f" ({now.what})" if now.what else ""
        return f"{self._name}: {now.words}{doing}"

    def _say_lines(self) -> None:
        wait_s = self._first_line_s
        while not self._over.wait(wait_s):
            self._console.print(Text(self.line()), soft_wrap=True)
            wait_s = self._line_every_s
