"""What commands print fits a terminal of 80 and of 60 columns: no word is cut, none is lost."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.helpers.pipeline_worlds import controller, world
from tests.helpers.places import ROOT
from tests.unit.apps.capacity.test_calibrate import Machine
from tidegate.benching import Bench, at_most
from tidegate.cli import app
from tidegate.commands import bench, output, planetlab
from tidegate.recording import RecordWriter
from tidegate.sim.microbatch.pipeline import simulate

VLD = str(ROOT / "examples" / "vld.toml")
WIDTHS = pytest.mark.parametrize("width", [80, 60])


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for console in (output.out, output.err):
        # A console keeps the COLUMNS of the moment in which it was made.
        monkeypatch.setattr(console, "_width", None)


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    """The records of a run."""
    place = tmp_path / "clicks.ckpt"
    place.mkdir()
    writer = RecordWriter(place)
    for record in simulate(world(seconds=60.0), controller()).records:
        writer.write(record)
    writer.close()
    return str(place)


def printed(width: int, *words: str) -> str:
    run = CliRunner().invoke(app, words, env={"COLUMNS": str(width)})
    assert run.exit_code == 0, run.output
    return run.stdout


def check(text: str, width: int, *parts: str) -> None:
    """Tables are no wider than the terminal, and have these words in them, whole."""
    drawn = [line for line in text.splitlines() if re.search(r"[│┃┏└┡]", line)]
    assert all(len(line.rstrip()) <= width for line in drawn), text
    assert "…" not in text
    whole = set(re.sub(r"[│┃]", " ", text).split())
    for part in parts:
        assert set(part.split()) <= whole, (part, text)


@WIDTHS
def test_plan(width: int) -> None:
    check(printed(width, "plan", VLD, "--cores", "22"), width, "aggregate rows/s latency 771 ms")


@WIDTHS
def test_simulate(width: int) -> None:
    words = ("simulate", VLD, "--allocation", "extract=10,match=11,aggregate=1", "--seconds", "50")
    check(printed(width, *words), width, "aggregate waiting work, M/M/k, scv gaps")


@WIDTHS
def test_the_lists(width: int) -> None:
    check(printed(width, "app"), width, "unique-visitor sine:8000+-6000/40 10 s transactions")
    check(printed(width, "paper"), width, "elasticutor minutes what shows last result")
    check(printed(width, "bench", "list"), width, "benchmark measures planner checkpoint")


@WIDTHS
def test_backtest(width: int) -> None:
    trace = Path("trace.csv")
    trace.write_text("minute,count\n" + "".join(f"{n},{3000 + n}\n" for n in range(240)))
    words = ("backtest", "trace.csv", "--app", "rolling-hashtag-count", "--policy", "0")
    text = printed(width, *words, "--policy", "spark-dynamic-allocation", "--seeds", "1")
    check(text, width, "spark-dynamic-allocation rolling-hashtag-count hindsight backlog, changes")


@WIDTHS
def test_whatif_and_replay(width: int, checkpoint: str) -> None:
    words = ("whatif", checkpoint, "--target", "3s", "--seeds", "1", "--warm-up", "5s")
    check(printed(width, *words), width, "simulated oracle core-seconds latency changes within")
    text = printed(width, "replay", checkpoint, "--target", "600ms")
    check(text, width, "second recorded replayed")


@WIDTHS
def test_calibrate(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.apps.capacity.calibrate.measure_cores", Machine())
    session = SimpleNamespace(stop=lambda: None)
    monkeypatch.setattr("tidegate.spark.session.session", lambda *given: session)
    text = printed(width, "calibrate", "grep", "--stretch", "--counts", "1,2,4", "--target", "3s")
    check(text, width, "cores measured predicted between standard error within")


@WIDTHS
def test_a_benchmark(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {f"some_long_name_{n}_ms": 1234.5678 for n in range(9)} | {"rows_per_s": 0.123456}
    found = Bench("made up", [row, row], [at_most("an aim of some words", 3.14159, 4.0, "ms")])
    monkeypatch.setattr(bench, "_load", lambda path: lambda options: found)
    text = printed(width, "bench", "planner")
    check(text, width, "name 8, ms 1,235 rows/s 0.123 3.14 <= 4 yes")
    assert "_" not in text.replace("x86_64", "")


RUN: dict[str, Any] = {
    "queries": 200,
    "mean_latency_s": 1.98765,
    "last_latency_s": 2.1,
    "kept_share": 0.4567,
    "cpu_percent": 181.2,
    "offered": 1_234_567,
    "kept": 600_000,
    "shed": 634_567,
    "verified": True,
    "verdict": "all answers are those of the rows that were kept",
}


@WIDTHS
def test_planetlab(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    planetlab._print_rows([RUN], 2.0, True, False)
    text = capsys.readouterr().out
    check(text, width, "queries latency 1.99 s 46 % dropped 634,567 answers right")
    assert "_" not in text
