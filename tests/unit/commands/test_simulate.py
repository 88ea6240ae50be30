"""`tidegate simulate`: its answers, and its one sentence when asked wrongly."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tidegate.cli import main
from tidegate.models.queueing.stations import Queues

CHAIN = """
rate = 13.0
[operators.extract]
service_rate = 1.6
[operators.match]
service_rate = 1.45
[[edges]]
from = "source"
to = "extract"
[[edges]]
from = "extract"
to = "match"
"""


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    path = tmp_path / "chain.toml"
    path.write_text(CHAIN)
    return path


class Said:
    """What the command line answered."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["tidegate", "simulate", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = self._capsys.readouterr()
        return int(ended.value.code or 0), captured.out, " ".join(captured.err.split())

    def json(self, *arguments: object) -> dict[str, Any]:
        code, answer, _ = self(*arguments, "--json")
        assert code == 0
        document: dict[str, Any] = json.loads(answer)
        return document


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Said:
    return Said(capsys, monkeypatch)


def test_json_has_what_the_design_promises(said: Said, chain: Path) -> None:
    ask = (chain, "--allocation", "extract=10,match=11", "--seconds", 5000, "--seed", 3)
    found = said.json(*ask)
    assert found == said.json(*ask)
    assert found["completed"] == pytest.approx(13 * 5000, rel=0.02)
    assert found["latency_ms"] == pytest.approx(found["visit_sum_ms"])
    predicted_ms = 1e3 * float(Queues.of([13.0, 13.0], [1.6, 1.45]).network_latency((10, 11)))
    assert found["predicted_visit_sum_ms"] == pytest.approx(predicted_ms)
    assert abs(found["visit_sum_ms"] - predicted_ms) <= found["visit_sum_half_width_ms"]
    assert found["p50_ms"] < found["latency_ms"] < found["p95_ms"] < found["p99_ms"]
    assert found["allocation"] == {"extract": 10, "match": 11}
    assert found["unstable"] == []
    assert [station["operator"] for station in found["stations"]] == ["extract", "match"]


def test_a_table_for_people(said: Said, chain: Path) -> None:
    code, answer, errors = said(chain, "--allocation", "extract=10, match=11", "--seconds", 1000)
    assert (code, errors) == (0, "")
    assert "extract" in answer and "M/M/k predicts" in answer and "all that follows" in answer


def test_what_is_simulated_is_what_the_model_is_told(said: Said, chain: Path) -> None:
    ask = (chain, "--allocation", "extract=9,match=10", "--seconds", 20_000)
    found = said.json(*ask, "--services", "lognormal:0.3", "--arrivals", "uniform")
    assert found["model"] == "gigk"
    extract = found["stations"][0]
    assert extract["service_scv"] == pytest.approx(0.3, rel=0.05)
    assert extract["arrival_scv"] == pytest.approx(1 / 3, rel=0.05)
    assert extract["sojourn_ms"] == pytest.approx(extract["predicted_sojourn_ms"], rel=0.05)


def test_rates_in_turn(said: Said, chain: Path) -> None:
    ask = (chain, "--allocation", "extract=10,match=11", "--rates", "5,13,18,5", "--step", 200)
    found = said.json(*ask)
    assert found["seconds"] == 800
    assert found["predicted_visit_sum_ms"] is None
    latencies_ms = [step["latency_ms"] for step in found["steps"]]
    assert max(latencies_ms) == latencies_ms[2]
    code, answer, _ = said(*ask)
    assert code == 0 and "step" in answer


def test_an_unstable_allocation_is_simulated_with_a_warning(said: Said, chain: Path) -> None:
    ask = (chain, "--allocation", "extract=8,match=11", "--seconds", 500, "--json")
    code, answer, errors = said(*ask)
    assert code == 0
    assert "operator 'extract' cannot keep up with 8 cores (it needs 9)" in errors
    found = json.loads(answer)
    assert found["unstable"] == ["extract"]
    assert found["predicted_visit_sum_ms"] is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--allocation", "extrat=10,match=11"], "'extrat'; did you mean 'extract'?"),
        (["--allocation", "extract=10"], "no cores to 'match'"),
        (["--allocation", "extract=1.5,match=11"], "whole number of cores of at least 1"),
        (["--allocation", "extract=0,match=11"], "whole number of cores of at least 1"),
        (["--allocation", "extract=1,extract=2,match=11"], "'extract' twice"),
        (["--allocation", "extract"], "is not OPERATOR=CORES"),
        (["--allocation", "extract=10,match=11", "--seconds", "0"], "above 0"),
        (["--allocation", "extract=10,match=11", "--seconds", "nan"], "above 0"),
        (["--allocation", "extract=10,match=11", "--seed", "-1"], "seed"),
        (
            ["--allocation", "extract=10,match=11", "--services", "unifrom"],
            "did you mean 'uniform'",
        ),
        (["--allocation", "extract=10,match=11", "--services", "uniform:x"], "is not an scv"),
        (["--allocation", "extract=10,match=11", "--arrivals", "uniform:2"], "between 0 and 1/3"),
        (["--allocation", "extract=10,match=11", "--emission", "rooted"], "did you mean 'routed'"),
        (["--allocation", "extract=10,match=11", "--rates", "5,x"], "is not a list of rates"),
        (["--allocation", "extract=10,match=11", "--bulk", "0"], "bulk"),
    ],
)
def test_asked_wrongly(said: Said, chain: Path, arguments: list[str], message: str) -> None:
    code, answer, errors = said(chain, *arguments)
    assert code == 2
    assert answer == ""
    assert message in errors and errors.startswith("tidegate: ")
