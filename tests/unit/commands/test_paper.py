"""`tidegate paper`: its list, one experiment to its end, and what it refuses in one sentence."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidegate.cli import app
from tidegate.errors import AskedWrongly
from tidegate.papers.catalogue import FIGURES

PAPERS = {"drs", "elasticutor", "overload", "mst", "flink-er"}


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["paper", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Results go below the current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_figure_of_the_five_papers_is_listed() -> None:
    rows = json.loads(run("--json"))["rows"]
    assert {row["paper"] for row in rows} == PAPERS
    assert len({(row["paper"], row["figure"]) for row in rows}) == len(rows) == len(FIGURES)
    ready = {row["paper"] for row in rows if row["status"] == "ready"}
    assert ready == {"drs", "elasticutor"}
    assert all(row["minutes"] > 0 for row in rows if row["status"] == "ready")
    assert all(row["last"] is None for row in rows)


def test_one_paper_is_listed_alone() -> None:
    rows = json.loads(run("drs", "--json"))["rows"]
    assert [row["figure"] for row in rows] == ["fig6", "fig7", "fig8", "fig9", "fig10", "table2"]


def test_an_experiment_leaves_its_result_and_its_picture(elsewhere: Path) -> None:
    told = json.loads(run("drs", "table2", "--quick", "--json"))
    assert (told["paper"], told["figure"], told["quick"]) == ("drs", "table2", True)
    assert {"name", "paper", "ours"} <= set(told["results"][0])
    assert {"name", "value", "aim", "met"} <= set(told["aims"][0])
    page = (elsewhere / told["picture"]).read_text()
    assert "milliseconds" in page and "<script" in page
    (row,) = [r for r in json.loads(run("drs", "--json"))["rows"] if r["figure"] == "table2"]
    assert "aims met, quick" in row["last"]
    assert "K_max 192" in run("drs", "table2", "--quick")


@pytest.mark.parametrize(
    "words, message",
    [
        (["dsr"], "there is no paper 'dsr'; did you mean 'drs'?"),
        (["drs", "fig66"], "'drs' has no 'fig66'; did you mean 'fig6'?"),
        (["mst", "fig6"], "cannot be run yet"),
        (["drs", "fig9", "--option", "app=vld"], "has no option 'app'"),
        (["drs", "fig6", "--option", "app=sse"], "app=sse: give vld or fpd"),
        (["drs", "fig6", "--option", "app"], "write it as NAME=VALUE"),
        (["elasticutor", "fig6", "--option", "skew=much"], "expected a number"),
    ],
)
def test_what_is_asked_wrongly_is_refused_before_spark_starts(
    words: list[str], message: str
) -> None:
    with pytest.raises(AskedWrongly) as refused:
        CliRunner().invoke(app, ["paper", *words], catch_exceptions=False)
    assert message in str(refused.value)
