"""What `--help` says: for somebody who has read no paper, with a line to try, and not cut off."""

import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tests.helpers.places import ROOT, SOURCE
from tests.unit.test_code_blocks import wrong_words
from tests.unit.test_docs import known_commands
from tidegate.cli import app, unwrapped

COMMANDS = sorted(known_commands())
NEEDS_A_PAPER = re.compile(
    r"\beq\.|\bequation|\btable (?:I|V|\d)|\bT_ra\b|\bT_max\b|\bK_max\b|\bMST eq|\brho\b(?! )|"
    r"\bsection [IV]+\b|\btuples?\b|\bsojourn"
)


def shown(*words: str, width: int = 80) -> str:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("typer.rich_utils.MAX_WIDTH", width)
        answer = CliRunner().invoke(app, [*words, "--help"], prog_name="tidegate")
    assert answer.exit_code == 0, answer.output
    return answer.output


@pytest.mark.parametrize("words", [[], ["backtest"]], ids=["all", "backtest"])
def test_the_usage_says_tidegate_however_it_was_started(words: list[str]) -> None:
    command = [sys.executable, "-m", "tidegate", *words, "--help"]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert run.stdout.split("\n")[1].startswith(f" Usage: {' '.join(['tidegate', *words])} [")
    assert "python" not in run.stdout.split("\n")[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_a_line_to_try(name: str) -> None:
    text = known_commands()[name].help
    example = text.partition("Example:\n\n")[2].strip()
    assert example.startswith(f"tidegate {name}")
    assert wrong_words(example.split()) == []
    assert len(example) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_help_needs_no_paper(name: str) -> None:
    command = known_commands()[name]
    texts = [command.help, *(one.help or "" for one in command.params)]
    assert [text for text in texts if NEEDS_A_PAPER.search(text)] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_not_cut_off(name: str) -> None:
    text = shown(name, width=80)
    assert "…" not in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_paragraphs_break_where_the_terminal_ends() -> None:
    assert unwrapped("One\ntwo.\n\nThree\nfour.") == "One two.\n\nThree four."
    lines = [line.strip() for line in shown("plan").splitlines()]
    inside = lines[lines.index("Example:") - 8 : lines.index("Example:")]
    assert all(len(line) > 60 for line in inside[:2])


def test_the_first_page_groups_the_commands() -> None:
    text = shown()
    assert text.index("Begin here") < text.index("│ demo") < text.index("Plan ahead")
    assert all(name in text for name in COMMANDS)


def test_every_command_of_the_help_is_on_the_page_of_commands() -> None:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"| `tidegate {name}" not in page] == []
