"""The command: JSON, table, plot, and one sentence for what is asked wrongly."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tidegate.cli import app
from tidegate.errors import AskedWrongly

FIELDS = {"app", "policy", "qos", "cost_vs_truth", "cost_vs_peak", "max_backlog", "scalings"}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    minutes = np.arange(240)
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


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--rho", "1.0"), "rho is 1"),
        (("--rho", "0.4"), "rho is 0.4"),
        (("--seeds", "0"), "seeds is 0"),
        (("--policy", "best"), "No policy is named 'best'"),
        (("--app", "grepp"), "did you mean 'grep'"),
        (("--plot", "no/such/place.html"), "does not exist"),
    ],
)
def test_wrong_asks_are_refused(trace: Path, arguments: tuple[str, ...], says: str) -> None:
    with pytest.raises(AskedWrongly, match=says):
        run(str(trace), *arguments)


def test_an_unknown_trace_names_the_generated_ones() -> None:
    with pytest.raises(AskedWrongly, match="worldcup-like"):
        run("no-such-week")
