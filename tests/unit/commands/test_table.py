"""No table cuts a word, however narrow the terminal is."""

import io

import pytest
from rich.console import Console
from rich.table import Table

from tidegate.commands.table import fitted

WORDS = ("operator", "latency", "reasonable", "8,192,000", "extraordinary")


def printed(table: Table, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, _environ={})
    console.print(fitted(table, console))
    return console.file.getvalue()  # type: ignore[attr-defined]


def table(columns: int) -> Table:
    made = Table(*(f"{WORDS[n % 5]} {n}" for n in range(columns)), title="many words", caption="c")
    for row in range(3):
        made.add_row(*(f"{WORDS[(n + row) % 5]} of row {row}" for n in range(columns)))
    return made


@pytest.mark.parametrize("width", [200, 120, 80, 60, 40])
@pytest.mark.parametrize("columns", [1, 2, 4, 9])
def test_every_word_is_whole(columns: int, width: int) -> None:
    text = printed(table(columns), width)
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    words = text.replace("│", " ").replace("┃", " ").split()
    for n in range(columns):
        assert WORDS[n % 5] in words
    assert words.count("row") == 3 * columns
    assert "many" in words and "c" in words


def test_a_table_that_fits_stays_as_it_is() -> None:
    text = printed(table(2), 80)
    assert "┃ operator 0" in text
    assert "│ operator of row 0   │ latency of row 0    │" in text


def test_numbers_that_must_not_break_keep_their_line() -> None:
    made = Table("what", "how long")
    made.add_column("value", justify="right", no_wrap=True)
    made.add_row("a sentence of many words that can be broken", "x", "8 192 000 rows")
    assert "8 192 000 rows" in printed(made, 40)


def test_blocks_leave_out_what_is_empty() -> None:
    made = Table(*(f"{word}{n}" for n in range(4) for word in WORDS))
    made.add_row(*(str(n) if n % 2 else "" for n in range(20)))
    text = printed(made, 50)
    assert "operator1" in text and "operator0" not in text
