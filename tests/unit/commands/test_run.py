"""`tidegate run` at the command line: flags, file and refusals, before any program runs."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tidegate.cli import main
from tidegate.commands.run import run
from tidegate.spark.options import ProgramOptions, declared


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """The settings with which a program would be run, or the exit code and what was said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    (tmp_path / "job.py").write_text("")
    found: list[Any] = []
    monkeypatch.setattr("tidegate.commands.run._run", found.append)

    def call(*words: str) -> Any:
        monkeypatch.setattr(sys, "argv", ["tidegate", "run", *words])
        found.clear()
        with pytest.raises(SystemExit) as ended:
            main()
        return found[0] if found else (ended.value.code, capsys.readouterr())

    return call


def test_flags_before_the_script_are_ours_and_all_after_it_the_programs(called) -> None:
    words = ["--target", "5s", "--executors", "1:20", "--dry-run", "--percentile", "95"]
    words += ["--excluded", "09:00-10:00", "--excluded", "12:00-13:00", "--no-kafka"]
    settings = called(*words, "job.py", "--target", "1s", "--", "-v", "x")
    assert settings.arguments == ("--target", "1s", "--", "-v", "x")
    assert settings.script == Path("job.py")
    expected = {
        "target": "5s",
        "executors": (1, 20),
        "dry_run": True,
        "percentile": 95,
        "excluded": ("09:00-10:00", "12:00-13:00"),
        "tick": "1 second",
    }
    assert {name: settings.attach[name] for name in expected} == expected
    assert settings.kafka is False


def test_flags_win_over_the_file(called, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(
        'target = "5s"\nexecutors = [1, 20]\ndry_run = true\nquiet = true\n'
    )
    settings = called("--config", "job.toml", "--executors", "2:4", "--no-dry-run", "job.py")
    assert settings.attach["executors"] == (2, 4)
    assert settings.attach["dry_run"] is False
    assert settings.attach["target"] == "5s"
    assert settings.quiet
    assert settings.config.file.path == tmp_path / "job.toml", "watched wherever the program goes"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["job.py"], "run needs a target: give --target 5s"),
        (["--target", "5s", "none.py"], "none.py does not exist"),
        (["--target", "5s", "--executors", "many", "job.py"], "executors many: write FEWEST:MOST"),
        (["--target", "5s", "--percentile", "p95", "job.py"], "percentile p95: expected a whole"),
        (["--config", "none.toml", "job.py"], "there is no file 'none.toml'"),
        (["--config", "wrong.toml", "job.py"], "did you mean 'executors'?"),
        (["--target", "5s", "--master", "locl", "job.py"], "'locl' is not a Spark master"),
    ],
)
def test_refused_by_one_sentence(called, tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / "wrong.toml").write_text("executers = 3")
    code, printed = called(*words)
    assert code == 2
    assert says in printed.err and printed.err.count("\n") == 1
    assert printed.out == ""


def test_without_a_script_or_with_an_unknown_flag(called) -> None:
    assert called("--target", "5s")[0] == 2
    assert called("--tarket", "5s", "job.py")[0] == 2


def test_help_has_every_option_that_is_declared(called) -> None:
    code, printed = called("--help")
    assert code == 0
    for name in declared(ProgramOptions):
        assert f"--{name.replace('_', '-')} " in printed.out
    assert run.__name__ == "run"


def test_the_script_for_spark_submit_is_there(called) -> None:
    code, printed = called("--submit-path")
    assert code == 0
    assert Path(printed.out.strip()).is_file()
