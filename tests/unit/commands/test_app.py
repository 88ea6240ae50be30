"""`tidegate app`: its list, its options, and its one sentence when asked wrongly, without Spark."""

import json
import sys
from dataclasses import fields

import pytest

from tidegate.apps.catalogue import PLACES, application, applications
from tidegate.apps.fpd.options import FpdOptions
from tidegate.apps.micro.options import MicroOptions
from tidegate.cli import main
from tidegate.commands.app import parse_extra, parse_split


def ended(monkeypatch, words: list[str]) -> int:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "argv", ["tidegate", "app", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


@pytest.mark.parametrize(
    "words, message",
    [
        (["mikro"], "there is no application 'mikro'; did you mean 'micro'?"),
        (["micro", "--option", "omega"], "write it as NAME=VALUE"),
        (["micro", "--option", "omega="], "write it as NAME=VALUE"),
        (["micro", "--option", "omga=3"], "'micro' has no option 'omga'; did you mean 'omega'?"),
        (["vld", "--option", "keys=3"], "'vld' has no option 'keys'; there are none"),
        (["micro", "--option", "keys=3", "--option", "keys=4"], "'keys' is given twice"),
        (["micro", "--option", "keys=ten"], "keys=ten: expected a whole number"),
        (["fpd", "--option", "window=0"], "window=0: give 1 to"),
        (["sse", "--option", "stocks=0"], "stocks=0: give a whole number from 1"),
        (["micro", "--split", "1:2:3"], "give the tasks of generator, calculator"),
        (["micro", "--split", "0:2"], "at least one task"),
        (["micro", "--seconds", "0"], "give 1 to 86400"),
        (["micro", "--target", "fast"], "fast"),
    ],
)
def test_asked_wrongly(monkeypatch, capsys, words: list[str], message: str) -> None:
    assert ended(monkeypatch, words) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert "starting Spark" not in said.err
    assert said.out == ""


def test_the_list_has_every_application_with_its_options(monkeypatch, capsys) -> None:
    assert ended(monkeypatch, ["--json"]) == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)["apps"]}
    assert list(listed) == list(PLACES)
    assert "omega" in listed["micro"]["options"]
    assert ended(monkeypatch, []) == 0
    table = capsys.readouterr().out
    assert all(one.name in table for one in applications())
    assert "permutations of their frequencies" in table


def test_options_and_splits_are_read() -> None:
    assert parse_extra(["omega=16", "fill=yes"]) == {"omega": "16", "fill": "yes"}
    assert parse_extra([]) == {}
    assert parse_split("10:11:1", application("vld")) == {
        "extract": 10,
        "match": 11,
        "aggregate": 1,
    }


def test_every_option_has_a_meaning() -> None:
    for name, options in (("fpd", FpdOptions), ("micro", MicroOptions)):
        assert list(application(name).options) == [one.name for one in fields(options)]
