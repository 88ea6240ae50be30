"""`tidegate bench` with a benchmark of its own: the answer as a table and as JSON."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidegate.cli import app
from tidegate.commands import bench
from tidegate.errors import TidegateError

BENCHMARK = '''"""Counts to three."""
from tidegate.benching import Bench, at_least, at_most

def run(options):
    options.say("counting")
    results = [{"n": n, "quick": options.quick} for n in range(3)]
    aims = [at_least("three", 3.0, 3), at_most("word " + options.extra["word"], 5.0, 2, "s")]
    return Bench("count", results, aims)
'''


@pytest.fixture(autouse=True)
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "count.py").write_text(BENCHMARK)
    package = tmp_path / "src" / "tidegate" / "__init__.py"
    monkeypatch.setattr(bench.tidegate, "__file__", str(package))
    return tmp_path


def test_json_is_one_document() -> None:
    run = CliRunner().invoke(app, ["bench", "count", "--json", "--quick", "--word", "x"])
    assert run.exit_code == 0
    answer = json.loads(run.stdout)
    assert answer["bench"] == "count" and answer["machine"]["cores"] >= 1
    assert [result["n"] for result in answer["results"]] == [0, 1, 2]
    assert answer["results"][0]["quick"] is True
    assert [aim["met"] for aim in answer["aims"]] == [True, False]
    assert answer["aims"][1] == {"name": "word x", "value": 5.0, "aim": "<= 2 s", "met": False}


def test_tables_for_people() -> None:
    run = CliRunner().invoke(app, ["bench", "count", "--word=x"])
    assert run.exit_code == 0
    assert "yes" in run.stdout and "no" in run.stdout and "<= 2 s" in run.stdout


def test_list_reads_the_description_without_running() -> None:
    run = CliRunner().invoke(app, ["bench", "list"])
    assert run.exit_code == 0 and "Counts to three." in run.stdout


def test_a_benchmark_may_import_from_a_folder_beside_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = checkout / "benchmarks" / "count_bodies"
    folder.mkdir()
    (folder / "up.py").write_text("NUMBERS = [1, 2, 3]")
    (checkout / "benchmarks" / "far.py").write_text(
        '"""Counts far."""\n'
        "from benchmarks.count_bodies.up import NUMBERS\n"
        "from tidegate.benching import Bench\n"
        "def run(options):\n"
        "    return Bench('far', [{'n': n} for n in NUMBERS], [])\n"
    )
    run = CliRunner().invoke(app, ["bench", "far", "--json"])
    assert [result["n"] for result in json.loads(run.stdout)["results"]] == [1, 2, 3]
    listed = json.loads(CliRunner().invoke(app, ["bench", "list", "--json"]).stdout)
    assert [each["name"] for each in listed["benchmarks"]] == ["count", "far"]


def test_outside_a_checkout(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / "benchmarks" / "count.py").unlink()
    (checkout / "benchmarks").rmdir()
    monkeypatch.chdir(checkout)
    run = CliRunner().invoke(app, ["bench", "list"])
    assert isinstance(run.exception, TidegateError)
    assert "from a checkout" in str(run.exception)


def test_a_wheel_brings_them_in_a_folder_of_its_own(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    shipped = checkout / "src" / "tidegate" / "shipped"
    shipped.mkdir(parents=True)
    (checkout / "benchmarks").rename(shipped / "benchmarks")
    monkeypatch.chdir(checkout / "src")
    run = CliRunner().invoke(app, ["bench", "count", "--json", "--word", "x"])
    assert run.exit_code == 0 and json.loads(run.stdout)["bench"] == "count"


def test_what_a_benchmark_compares_with_is_named_where_it_is_missing(checkout: Path) -> None:
    (checkout / "benchmarks" / "peer.py").write_text('"""Peer."""\nimport no_such_peer.part\n')
    run = CliRunner().invoke(app, ["bench", "peer"])
    assert isinstance(run.exception, TidegateError)
    assert "the benchmark 'peer' needs the package 'no_such_peer'" in str(run.exception)
