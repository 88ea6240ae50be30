"""The command: JSON, table, plot, and one sentence for what is asked wrongly."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tidegate.cli import app
from tidegate.errors import AskedWrongly
from tidegate.models.capacity.measured import CapacitySample, MeasuredCapacity

FIELDS = {"app", "policy", "qos", "cost_vs_truth", "cost_vs_peak", "max_backlog", "scalings"}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    minutes = np.arange(150)
    counts = (3000 + 1500 * np.sin(minutes / 30.0)).astype(int)
    path = tmp_path / "trace.csv"
    lines = (f"{minute},{count}" for minute, count in zip(minutes, counts, strict=True))
    path.write_text("minute,count\n" + "\n".join(lines) + "\n")
    return path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["backtest", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_has_a_row_per_application_and_policy(trace: Path) -> None:
    document = json.loads(run(str(trace), "--policy", "0", "--seeds", "1", "--json"))
    assert len(document["rows"]) == 8
    assert set(document["rows"][0]) >= FIELDS
    qos = [row["qos"] for row in document["rows"]]
    assert qos == sorted(qos, reverse=True)


def test_the_default_policy_is_our_own_and_the_plot_stands_alone(
    trace: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    said = run(str(trace), "--app", "grep", "--seeds", "1", "--plot", str(page))
    assert "priced-capacity" in said
    text = page.read_text()
    assert "Backlog" in text
    assert "<script src=" not in text
    assert "<link" not in text


def test_a_pipelines_policy_stands_beside_one_for_machines(trace: Path, tmp_path: Path) -> None:
    asked = ("--app", "grep", "--policy", "latency", "--policy", "priced-capacity", "--tick", "30s")
    rows = json.loads(run(str(trace), *asked, "--json"))["rows"]
    within = {row["policy"]: row["within_target"] for row in rows}
    assert within["priced-capacity"] is None
    assert within["latency"] > 50.0
    page = tmp_path / "page.html"
    said = run(str(trace), *asked, "--target", "5s", "--plot", str(page))
    assert "on time" in said and "mean latency 5s" in " ".join(said.split())
    assert "latency" in page.read_text()


def test_a_measured_capacity_takes_the_place_of_the_applications(
    trace: Path, tmp_path: Path
) -> None:
    samples = tuple(CapacitySample(cores=m, rows_per_s=90.0 * m) for m in (1, 2, 4, 8, 12))
    MeasuredCapacity(pipeline="ads", samples=samples).write(tmp_path / "ads.json")
    words = ("--capacity", str(tmp_path / "ads.json"), "--seeds", "1", "--json")
    (row,) = json.loads(run(str(trace), *words))["rows"]
    assert row["app"] == "ads"
    assert row["qos"] > 80.0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--rho", "1.0"), "rho is 1"),
        (("--rho", "0.4"), "rho is 0.4"),
        (("--seeds", "0"), "seeds is 0"),
        (("--policy", "best"), "No policy is named 'best'"),
        (("--policy", "drs(w=0)"), "a whole number of ticks"),
        (("--policy", "latency", "--tick", "7s"), "does not divide a minute"),
        (("--policy", "latency", "--target", "soon"), "is not a duration"),
        (("--capacity", "none.json"), "no capacity file"),
        (("--capacity", "none.json", "--app", "grep"), "both say what the load runs on"),
        (("--app", "grepp"), "did you mean 'grep'"),
        (("--plot", "no/such/place.html"), "does not exist"),
        (("--plot", "."), "is a directory"),
    ],
)
def test_wrong_asks_are_refused(trace: Path, arguments: tuple[str, ...], says: str) -> None:
    with pytest.raises(AskedWrongly, match=says):
        run(str(trace), *arguments)


def test_an_unknown_trace_names_the_generated_ones() -> None:
    with pytest.raises(AskedWrongly, match="worldcup-like"):
        run("no-such-week")
