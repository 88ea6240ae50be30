"""`tidegate planetlab`: asked wrongly it says so before Spark starts; wrong answers fail it."""

import json
import sys
from types import SimpleNamespace

import pytest

from tests.unit.papers.overload.outcomes import outcome
from tidegate.cli import main


@pytest.mark.parametrize(
    "words, message",
    [
        (["--queries", "many"], "write them as 20,100,200"),
        (["--queries", "20,0"], "write them as 20,100,200"),
        (["--queries", "20,1000000"], "from 1 to 10,000"),
        (["--row-time", "20"], "'20' is not a duration"),
        (["--target", "fast"], "fast"),
        (["--seconds", "1"], "give 5 to 86400"),
        (["--cores", "0"], "give 1 or more"),
        (["--series", "none.csv"], "there is no file 'none.csv'"),
    ],
)
def test_asked_wrongly(monkeypatch, capsys, words: list[str], message: str) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "argv", ["tidegate", "planetlab", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


@pytest.mark.parametrize("correct", [True, False])
def test_it_fails_if_an_answer_is_wrong(monkeypatch, capsys, correct: bool) -> None:
    session = SimpleNamespace(stop=lambda: None)
    monkeypatch.setattr("tidegate.spark.session.session", lambda *given, **options: session)
    monkeypatch.setattr(
        "tidegate.apps.planetlab.run.run_planetlab",
        lambda *given, queries, **options: outcome(queries, correct=correct or queries < 200),
    )
    words = ["planetlab", "--queries", "20,200", "--json"]
    monkeypatch.setattr(sys, "argv", ["tidegate", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code if correct else ended.value.code == 1
    said = capsys.readouterr()
    assert [row["verified"] for row in json.loads(said.out)["rows"]] == [True, correct]
    assert ("the runs with 200 queries are wrong" in said.err) is not correct
