"""What becomes of an experiment's findings: printed, kept, written as a page, and judged."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tidegate.benching import Aim, at_least, at_most
from tidegate.cli import main
from tidegate.commands.paper_answer import body_of
from tidegate.papers.figure import Asked, Compared, Figure, Findings
from tidegate.view.pages.paper import Curve, Picture

RIGHT = Findings(
    compared=(Compared("a split [a]", "10:11:1", "9:12:1"), Compared("ms", None, 3.5)),
    aims=(at_least("speed", 2.0, 1.0), at_most("vld: wrong answers", 0, 0)),
    pictures=(Picture("p", "x", "y", (Curve("ours", (1.0, 2.0), (3.0, 4.0)),)),),
    notes=("It is stretched.",),
)
WRONG = replace(RIGHT, aims=(RIGHT.aims[0], at_most("vld: wrong answers", 2, 0)))
UNBOUNDED = replace(
    RIGHT,
    compared=(Compared("ms", math.nan, math.inf),),
    aims=(at_most("worst error", math.inf, 0.2), at_least("never measured", None, 1.0)),
)


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys):
    """Runs a made-up figure `fig1`, beside which there is a `fig10`; results go below tmp_path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(found: Findings, *words: str, ends: int = 0) -> tuple[str, str]:
        figures = tuple(
            Figure(
                paper="drs",
                figure=name,
                about="a figure",
                body="spark",
                minutes=2.0,
                stretched=True,
                also=also,
                options={"app": "which one"},
                run=lambda asked: found,
            )
            for name, also in (("fig1", ("fig2",)), ("fig2", ("fig1",)), ("fig10", ()))
        )
        monkeypatch.setattr("tidegate.papers.catalogue.FIGURES", figures)
        monkeypatch.setattr(sys, "argv", ["tidegate", "paper", *words])
        with pytest.raises(SystemExit) as end:
            main()
        assert int(end.value.code or 0) == ends
        return capsys.readouterr()

    return call


def last(called, figure: str) -> str | None:
    rows = json.loads(called(RIGHT, "--json").out)["rows"]
    return next(row["last"] for row in rows if row["figure"] == figure)


def test_the_document_says_how_it_was_asked_for(called) -> None:
    found = json.loads(called(RIGHT, "drs", "fig1", "--option", "app=vld", "--json").out)
    assert (found["quick"], found["options"], found["verified"]) == (False, {"app": "vld"}, True)
    assert found["results"][1] == {"name": "ms", "paper": None, "ours": 3.5}
    assert Path(found["picture"]).name == "drs-fig1.app=vld.html"


def test_the_page_has_the_values_and_how_it_ran(called) -> None:
    page = Path(json.loads(called(RIGHT, "drs", "fig1", "--json").out)["picture"]).read_text(
        "utf-8"
    )
    assert "<h1>drs fig1: a figure</h1>" in page
    assert "Operators are stretched" in page and "on Spark" in page
    assert "<td>a split [a]</td><td>10:11:1</td><td>9:12:1</td>" in page
    assert "<td>speed</td><td>2</td><td>&gt;= 1</td>" in page and "It is stretched." in page


def test_people_read_the_same(called) -> None:
    printed = called(RIGHT, "drs", "fig1").out
    assert "a split [a]" in printed and "met: speed: 2, aim >= 1" in printed
    assert "stretched by waiting" in printed and "It is stretched." in printed


def test_a_short_version_does_not_overwrite_the_full_result(called) -> None:
    called(WRONG, "drs", "fig1", "--quick", ends=1)
    assert last(called, "fig1") == "1 of 2 aims met, wrong answers, quick"
    called(RIGHT, "drs", "fig1")
    assert last(called, "fig1") == last(called, "fig2") == "2 of 2 aims met"
    called(WRONG, "drs", "fig1", "--quick", ends=1)
    called(WRONG, "drs", "fig1", "--option", "app=vld", ends=1)
    assert last(called, "fig1") == "2 of 2 aims met", "the last full one is shown"


def test_a_result_with_options_is_shown_with_them_if_there_is_no_other(called) -> None:
    called(RIGHT, "drs", "fig1", "--option", "app=a/b")
    assert last(called, "fig1") == "2 of 2 aims met, app=a/b"
    called(RIGHT, "drs", "fig10", "--quick")
    assert last(called, "fig10") == "2 of 2 aims met, quick"
    called(RIGHT, "drs", "fig1", "--quick", "--option", "app=fpd")
    called(RIGHT, "drs", "fig1", "--quick")
    assert last(called, "fig1") == "2 of 2 aims met, quick"


def test_values_that_are_not_finite_lose_nothing(called) -> None:
    found = json.loads(called(UNBOUNDED, "drs", "fig1", "--json").out)
    assert found["results"] == [{"name": "ms", "paper": None, "ours": None}]
    assert [(aim["value"], aim["met"]) for aim in found["aims"]] == [(None, False)] * 2
    assert found["verified"] is None
    assert last(called, "fig1") == "0 of 2 aims met"
    printed = called(UNBOUNDED, "drs", "fig1").out
    assert "MISSED: worst error: inf, aim <= 0.2" in printed
    assert "MISSED: never measured: not measured, aim >= 1" in printed


def test_wrong_answers_fail_after_they_were_printed_and_kept(called) -> None:
    out, err = called(WRONG, "drs", "fig1", "--json", ends=1)
    assert json.loads(out)["verified"] is False
    assert "the answers of a run were wrong (vld: wrong answers: 2, aim <= 0)" in err
    assert last(called, "fig1") == "1 of 2 aims met, wrong answers"


def test_what_cannot_be_kept_was_printed_before(called, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(document: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("tidegate.commands.paper_answer.keep", full)
    out, err = called(RIGHT, "drs", "fig1", "--json", ends=1)
    assert json.loads(out)["aims"][0]["met"] is True
    assert "no space left" in err


@pytest.mark.parametrize(
    ("body", "words"),
    [("spark", "on Spark"), ("simulated", "simulated"), ("measured", "without Spark")],
)
def test_every_body_has_its_own_words(body, words: str) -> None:
    figure = Figure(
        paper="drs", figure="table2", about="", body=body, minutes=1.0, run=lambda asked: RIGHT
    )
    assert body_of(figure, Asked()) == words
    assert body_of(figure, Asked(quick=True)) == f"{words}, short version"


def test_an_aim_without_a_value_is_missed() -> None:
    assert at_least("a", None, 1.0) == Aim("a", None, ">= 1", False)
    assert at_most("a", None, 1.0) == Aim("a", None, "<= 1", False)
    assert not at_least("a", math.nan, 1.0).met and not at_most("a", math.nan, 1.0).met
