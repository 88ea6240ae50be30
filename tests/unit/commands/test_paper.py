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
    assert {row["status"] for row in rows} == {"ready"}
    assert all(row["minutes"] > 0 for row in rows)
    assert all(row["last"] is None for row in rows)
    assert {row["body"] for row in rows} == {"spark", "simulated", "measured"}


def test_the_options_of_a_figure_can_be_found() -> None:
    rows = {row["figure"]: row for row in json.loads(run("drs", "--json"))["rows"]}
    assert set(rows["fig8"]["options"]) == {"app"} and rows["table2"]["options"] == {}
    printed = run("elasticutor")
    assert "--option" in printed and "exponent" in printed
    assert "worldcup" in run("mst") and "exponent" not in run("mst"), "only those of the paper"


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
    printed = run("drs", "table2", "--quick")
    assert "K_max 192" in printed and "without Spark" in printed


@pytest.mark.parametrize(
    "words, message",
    [
        (["dsr"], "there is no paper 'dsr'; did you mean 'drs'?"),
        (["drs", "fig66"], "'drs' has no 'fig66'; did you mean 'fig6'?"),
        (["mst", "table1", "--option", "worldcup=nowhere.csv"], "nowhere.csv cannot be read"),
        (["mst", "fig7", "--option", "latency=maybe"], "latency=maybe: give yes or no"),
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


def test_options_of_any_length_have_a_place_for_the_result(elsewhere: Path) -> None:
    week = elsewhere / ("a" * 100) / ("b" * 100) / "week.csv"
    week.parent.mkdir(parents=True)
    lines = [f"{minute},{1000 + 37 * (minute % 19)}" for minute in range(300)]
    week.write_text("\n".join(["minute,count", *lines]), encoding="utf-8")
    told = json.loads(run("mst", "table1", "--option", f"worldcup={week}", "--json"))
    assert (elsewhere / told["picture"]).is_file()
    (row,) = [r for r in json.loads(run("mst", "--json"))["rows"] if r["figure"] == "table1"]
    assert f"worldcup={week}" in row["last"]
