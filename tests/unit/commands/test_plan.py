"""`tidegate plan` as a person and as a program call it."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.places import EXAMPLES
from tidegate.cli import main

VLD = str(EXAMPLES / "vld.toml")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit code, standard output, standard error of `tidegate ARGUMENTS`."""

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tidegate", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return call


def test_cores_give_the_papers_split(run: Run) -> None:
    code, out, err = run("plan", VLD, "--cores", "22", "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert set(document) == {"allocation", "cores", "latency_ms", "model"}
    assert document["allocation"] == {"extract": 10, "match": 11, "aggregate": 1}
    assert (document["cores"], document["model"]) == (22, "mmk")
    assert document["latency_ms"] == pytest.approx(1640.958, abs=1e-3)


def test_latency_gives_the_fewest_cores(run: Run) -> None:
    _, out, _ = run("plan", VLD, "--latency", "1.7 seconds", "--json")
    fewest = json.loads(out)
    assert fewest["latency_ms"] <= 1700
    _, out, _ = run("plan", VLD, "--cores", str(fewest["cores"] - 1), "--json")
    assert json.loads(out)["latency_ms"] > 1700


def test_people_get_a_table(run: Run) -> None:
    code, out, _ = run("plan", VLD, "--cores", "22")
    assert code == 0
    for word in ("operator", "rows/s", "cores", "busy", "of the whole", "extract", "81 %"):
        assert word in out
    assert "22 cores: mean latency 1.64 s (model mmk)" in out


def test_the_model_counts_variability(run: Run) -> None:
    file = str(EXAMPLES / "split-join-loop.toml")
    latencies = {
        model: json.loads(run("plan", file, "--cores", "24", "--model", model, "--json")[1])[
            "latency_ms"
        ]
        for model in ("mmk", "gigk")
    }
    assert latencies["mmk"] != latencies["gigk"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--cores", "18"), "at least 19 are needed"),
        (("--latency", "1s"), "the lowest that can is 1.34 s"),
        ((), "exactly one"),
        (("--cores", "22", "--latency", "2s"), "exactly one"),
        (("--cores", "0"), "at least 1"),
        (("--latency", "fast"), "is not a duration"),
        (("--cores", "22", "--model", "mmq"), "did you mean 'mmk'?"),
    ],
)
def test_wrong_asks_exit_2_with_one_sentence(
    run: Run, arguments: tuple[str, ...], words: str
) -> None:
    code, out, err = run("plan", VLD, *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_the_nearest_feasible_values_are_feasible(run: Run) -> None:
    assert run("plan", VLD, "--cores", "19", "--json")[0] == 0
    assert run("plan", VLD, "--latency", "1.34 s", "--json")[0] == 0


def test_a_bad_file_exits_2_and_shows_brackets(run: Run, tmp_path: Path) -> None:
    code, _, err = run("plan", str(tmp_path / "none.toml"), "--cores", "3")
    assert code == 2
    assert re.search("there is no file", err)
    bare = tmp_path / "bare.toml"
    bare.write_text("rate = 1\n", encoding="utf-8")
    code, _, err = run("plan", str(bare), "--cores", "3")
    assert code == 2
    assert "[operators.NAME]" in err
