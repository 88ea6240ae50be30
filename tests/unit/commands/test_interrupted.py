"""Ctrl-C ends a command with what it has found so far, exit code 130 and no traceback."""

import json
import sys
from types import SimpleNamespace

import pytest

from tests.helpers.synthetic_surge import surge
from tidegate.apps.surge import Surge
from tidegate.cli import main


@pytest.fixture
def called(monkeypatch, capsys):
    """Runs a command on a session that only counts how often it is stopped."""
    stops: list[None] = []
    session = SimpleNamespace(stop=lambda: stops.append(None))
    monkeypatch.setattr("tidegate.spark.session.session", lambda *given: session)

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

    monkeypatch.setattr("tidegate.apps.planetlab.run_planetlab", run)
    out, err = called("planetlab", "--queries", "20,100,200", "--json")
    assert json.loads(out)["rows"] == [{"queries": 20}]
    assert err.splitlines()[-1] == "tidegate: stopped"
