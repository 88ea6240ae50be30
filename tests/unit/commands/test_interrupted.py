"""Ctrl-C ends a command with what it has found so far, exit code 130 and no traceback."""

import json
import sys
from types import SimpleNamespace

import pytest

from tests.helpers.synthetic_surge import surge
from tidegate.apps.run_application import ApplicationRun
from tidegate.apps.surge import Surge
from tidegate.cli import main


@pytest.fixture
def called(monkeypatch, capsys):
    """Runs a command on a session that only counts how often it is stopped."""
    stops: list[None] = []
    session = SimpleNamespace(stop=lambda: stops.append(None))
    for place in ("tidegate.spark.session.session", "tidegate.papers.sessions.session"):
        monkeypatch.setattr(place, lambda *given, **options: session)

    def run(*words: str) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["tidegate", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 130
        assert len(stops) == 1
        return capsys.readouterr()

    return run


def test_the_demo_prints_its_summary(monkeypatch, called):
    found = Surge("latency", 90.0, surge(), 70, 70, True, 8, interrupted=True)
    monkeypatch.setattr("tidegate.apps.surge.run_surge", lambda *given, **options: found)
    out, err = called("demo", "--json", "--picture", "")
    document = json.loads(out)
    assert document["interrupted"] is True and document["rows"] == 70
    assert err.splitlines()[-1] == "tidegate: stopped" and "Traceback" not in err


def test_a_demo_that_has_nothing_to_show_says_that_it_stopped(monkeypatch, called):
    def interrupted(*given, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("tidegate.apps.surge.run_surge", interrupted)
    out, err = called("demo")
    assert out == ""
    assert err.splitlines()[-1] == "tidegate: stopped" and "Traceback" not in err


def test_planetlab_prints_the_runs_that_were_finished(monkeypatch, called):
    def run(*given, queries: int, **options):
        if queries == 100:
            raise KeyboardInterrupt
        return SimpleNamespace(document=lambda: {"queries": queries})

    monkeypatch.setattr("tidegate.apps.planetlab.run.run_planetlab", run)
    out, err = called("planetlab", "--queries", "20,100,200", "--json")
    assert json.loads(out)["rows"] == [{"queries": 20}]
    assert err.splitlines()[-1] == "tidegate: stopped"


def test_an_experiment_starts_no_further_run(monkeypatch, called):
    runs: list[None] = []

    def run(*given, **options):
        runs.append(None)
        return ApplicationRun(name="fpd", seconds=9.0, records=surge(), arrived=9, verdict=None)

    monkeypatch.setattr("tidegate.papers.drs.runs.run_application", run)
    out, err = called("paper", "drs", "fig6", "--option", "app=fpd")
    assert len(runs) == 1 and out == ""
    assert err.splitlines()[-1] == "tidegate: stopped" and "Traceback" not in err
