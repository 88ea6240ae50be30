"""`tidegate app`: its list, its options, and its one sentence when asked wrongly, without Spark."""

import json
import sys
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from tests.helpers.synthetic_surge import surge
from tidegate.apps import run_application
from tidegate.apps.application import Verdict
from tidegate.apps.campaigns.options import CampaignOptions
from tidegate.apps.catalogue import PLACES, application, applications
from tidegate.apps.flights.options import FlightOptions
from tidegate.apps.fpd.options import FpdOptions
from tidegate.apps.hashtags.options import HashtagOptions
from tidegate.apps.learning.options import LearningOptions
from tidegate.apps.micro.options import MicroOptions
from tidegate.apps.run_application import ApplicationRun
from tidegate.apps.sentiment.options import SentimentOptions
from tidegate.apps.vht.options import VhtOptions
from tidegate.apps.wordcount.options import WordCountOptions
from tidegate.cli import main
from tidegate.commands.app import parse_extra, parse_split
from tidegate.spark import session
from tidegate.view.live import terminal


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
        (["hashtags", "--option", "window_s=7"], "window_s=7: give a multiple of every_s=5"),
        (["flights", "--option", "near=7"], "'flights' has no option 'near'"),
        (["learning", "--option", "round=100"], "round=100: give a multiple of 64"),
        (["campaigns", "--option", "adds=3"], "has no option 'adds'; did you mean 'ads'?"),
        (["micro", "--split", "1:2:3"], "give the tasks of generator, calculator"),
        (["micro", "--split", "0:2"], "cannot have 0 tasks; give 1 to 24"),
        (["fpd", "--split", "500:500:500"], "'generate' of 'fpd' cannot have 500 tasks"),
        (["sse", "--split", "1:1:1:1:1:2:1:1:1:1:1:1"], "'index' of 'sse' cannot have 2 tasks"),
        (["micro", "--option", "shards=8", "--split", "1:9"], "'calculator' of 'micro' cannot"),
        (["micro", "--policy", "nonsense"], "there is no policy 'nonsense'"),
        (["micro", "--policy", "latncy"], "did you mean 'latency'?"),
        (["micro", "--rate", "sine:fast"], "'fast' does not describe a sine profile"),
        (["micro", "--rate", "nonsense"], "nonsense"),
        (["micro", "--rate", "csv:missing.csv"], "missing.csv"),
        (["micro", "--cores", "many"], "--cores many: write FEWEST:MOST"),
        (["micro", "--cores", "4:2"], "give a minimum from 1 up to the maximum"),
        (["micro", "--cores", "0:2"], "give a minimum from 1 up to the maximum"),
        (["fpd", "--option", "windw=3"], "'fpd' has no option 'windw'; did you mean 'window'?"),
        (["micro", "--seconds", "0"], "give 1 to 86400"),
        (["micro", "--target", "fast"], "fast"),
        (["micro", "--option", "omega=1e-320"], "give 0, or 0.001 to 6000"),
        (["grep", "--option", "pattern=a{99999999999999999999}"], "no regular expression that"),
        (["grep", "--option", f"pattern={'(' * 5000}"], "no regular expression that"),
        (["micro", "--capacity", "missing.json"], "missing.json"),
        (["micro", "--policy", "mst-0"], "does not learn what cores can process"),
        (["micro", "--picture", "/dev/null/x.html"], "no file can be written there"),
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


@pytest.mark.parametrize("stretched", [True, False])
def test_whatever_is_stretched_says_so_in_its_live_view_and_picture(
    monkeypatch, capsys, tmp_path, stretched: bool
) -> None:
    titles: list[str] = []

    class Watched(terminal.LiveView):
        def __init__(self, console: Console, target_s: float, title: str, **options: Any) -> None:
            titles.append(title)
            super().__init__(console, target_s, title, **options)

    done = ApplicationRun(
        name="grep",
        seconds=40.0,
        records=surge(),
        arrived=100,
        verdict=Verdict(correct=True, said="all lines are right"),
    )
    monkeypatch.setattr(terminal, "LiveView", Watched)
    monkeypatch.setattr(run_application, "run_application", lambda *given, **options: done)
    monkeypatch.setattr(session, "session", lambda *given: SimpleNamespace(stop=lambda: None))
    picture = tmp_path / "grep.html"
    words = ["grep", "--picture", str(picture), *(["--stretch"] if stretched else [])]
    assert ended(monkeypatch, words) == 0
    (title,) = titles
    assert title.startswith("tidegate app grep")
    assert ("stretched" in title) is stretched
    page = picture.read_text(encoding="utf-8")
    assert f"<h1>{title}</h1>" in page and f"<title>{title}</title>" in page
    assert title in capsys.readouterr().out, "the summary's title"


def test_options_and_splits_are_read() -> None:
    assert parse_extra(["omega=16", "fill=yes"]) == {"omega": "16", "fill": "yes"}
    assert parse_extra([]) == {}
    split = parse_split("10:11:1", application("vld"), {})
    assert split == {"extract": 10, "match": 11, "aggregate": 1}


def test_every_operator_has_a_bound_and_a_default_within_it() -> None:
    for one in applications():
        most = one.most_tasks({})
        assert set(most) == set(one.operators)
        assert min(most.values()) >= 1
        one.check_split(most, {})


def test_every_option_has_a_meaning() -> None:
    for name, options in (
        ("fpd", FpdOptions),
        ("micro", MicroOptions),
        ("vht", VhtOptions),
        ("hashtags", HashtagOptions),
        ("flights", FlightOptions),
        ("wordcount", WordCountOptions),
        ("sentiment", SentimentOptions),
        ("learning", LearningOptions),
        ("campaigns", CampaignOptions),
    ):
        assert list(application(name).options) == [one.name for one in fields(options)]
