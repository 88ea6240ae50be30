"""Progress is a bar on a terminal and a line now and then elsewhere, and never in between."""

import io
import threading

import pytest
from rich.console import Console

from tidegate.progress import Progress
from tidegate.view.live.progress import ShownProgress


class Written(io.StringIO):
    """A file that tells when something was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = threading.Semaphore(0)

    def write(self, text: str) -> int:
        for _ in range(text.count("\n")):
            self.lines.release()
        return super().write(text)


def half_done() -> Progress:
    now = iter([0.0, 0.0])
    progress = Progress(clock=lambda: next(now, 60.0))
    progress.expect(4)
    progress.reached(2, "the third of four rounds")
    return progress


def drawn(shown: ShownProgress, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(shown.picture())
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return [line.rstrip() for line in text.splitlines()]


def test_in_a_file_a_line_comes_now_and_then() -> None:
    file = Written()
    console = Console(file=file, width=80)
    with ShownProgress(console, "chaos", half_done(), first_line_s=0.0, line_every_s=0.0):
        assert file.lines.acquire(timeout=30) and file.lines.acquire(timeout=30)
    first, second, *_ = file.getvalue().splitlines()
    assert first == second == "chaos: 50 % done, about 60 s left (the third of four rounds)"


def test_work_that_is_soon_over_says_nothing_in_a_file() -> None:
    file = io.StringIO()
    with ShownProgress(Console(file=file), "simulate") as shown:
        shown.progress.expect(1)
        shown.progress.reached(1)
    assert file.getvalue() == ""


@pytest.mark.parametrize("width", [80, 60])
def test_the_bar_fits_a_narrow_terminal(width: int) -> None:
    what, bar = drawn(ShownProgress(Console(), "chaos", half_done()), width)
    assert what == "chaos: the third of four rounds"
    assert bar.endswith("50 % done, about 60 s left") and len(bar) <= width


def test_the_bar_is_drawn_and_removed_on_a_terminal() -> None:
    file = io.StringIO()
    console = Console(file=file, width=80, force_terminal=True)
    with ShownProgress(console, "chaos", half_done()) as shown:
        shown.say("round 2: nothing lost")
    assert "50 % done" in file.getvalue()
    assert "round 2: nothing lost" in file.getvalue()
    assert file.getvalue().endswith("\x1b[2K")  # the line of the bar is empty again
