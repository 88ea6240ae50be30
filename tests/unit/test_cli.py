"""The command line as a user meets it: exit code, answer and complaint apart."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers.places import ROOT
from tidegate.cli import main


@dataclass(frozen=True)
class Run:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def tidegate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs the entry point as the console command does, in this process to save its start."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str) -> Run:
        monkeypatch.setattr(sys, "argv", ["tidegate", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        return Run(code if isinstance(code, int) else 0, *capsys.readouterr())

    return run


def test_as_its_own_process() -> None:
    command = [sys.executable, "-m", "tidegate", "demo", "--seconds", "0", "--json"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1 and "Traceback" not in run.stderr
    assert run.stdout == ""


def test_help_names_every_command(tidegate) -> None:
    run = tidegate("--help")
    assert run.returncode == 0
    assert "demo" in run.stdout and "bench" in run.stdout


@pytest.mark.parametrize(("command", "option"), [("demo", "--seconds"), ("bench", "--quick")])
def test_help_of_a_command(tidegate, command: str, option: str) -> None:
    run = tidegate(command, "--help")
    assert run.returncode == 0
    assert option in run.stdout and "--json" in run.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["demo", "--seconds", "0"], "0 seconds"),
        (["demo", "--master", "locl[2]"], "'locl[2]' is not a Spark master"),
        (["demo", "--rate", "constant:-5"], "-5 rows/s"),
        (["bench", "sorce"], "did you mean 'source'"),
        (["bench", "source", "odd"], "cannot read 'odd'"),
    ],
)
def test_asked_wrongly(tidegate, words: list[str], says: str) -> None:
    run = tidegate(*words)
    assert run.returncode == 2
    assert says in run.stderr and run.stderr.count("\n") == 1
    assert run.stdout == "" and "Traceback" not in run.stderr


def test_a_bad_line_of_rates(tidegate, tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_text("second,rate\n0,100\n10,fast\n")
    run = tidegate("demo", "--rate", f"csv:{file}", "--json")
    assert run.returncode == 2
    assert "line 3" in run.stderr and run.stdout == ""


def test_an_unknown_command_or_option(tidegate) -> None:
    assert tidegate("sing").returncode == 2
    assert tidegate("demo", "--loud").returncode == 2


def test_bench_list_as_json(tidegate) -> None:
    run = tidegate("bench", "list", "--json")
    assert run.returncode == 0
    names = {row["name"]: row["description"] for row in json.loads(run.stdout)["benchmarks"]}
    assert "rate source" in names["source"]


def test_version(tidegate) -> None:
    assert tidegate("--version").stdout.startswith("tidegate ")


def test_an_unexpected_error_is_one_sentence(tidegate, monkeypatch) -> None:
    def broken(prog_name: str) -> None:
        raise RuntimeError("\nthe engine stopped\nat line 1\nat line 2")

    monkeypatch.setattr("tidegate.cli.app", broken)
    done = tidegate()
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "tidegate: unexpected RuntimeError: the engine stopped; set TIDEGATE_TRACEBACK=1 to see"
        " the traceback"
    )
    monkeypatch.setenv("TIDEGATE_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        tidegate()
