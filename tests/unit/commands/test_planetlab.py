"""`tidegate planetlab`: its one sentence when asked wrongly, before Spark is started."""

import sys

import pytest

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
