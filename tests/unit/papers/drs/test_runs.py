"""A run of an application within an experiment: Ctrl-C in it ends the whole experiment."""

import pytest

from tests.helpers.synthetic_surge import surge
from tidegate.apps.application import Verdict
from tidegate.apps.catalogue import application
from tidegate.apps.run_application import ApplicationRun
from tidegate.errors import TidegateError
from tidegate.papers.application_runs import wrong_answers
from tidegate.papers.drs import runs
from tidegate.papers.drs.runs import Wanted, run

RIGHT = Verdict(correct=True, said="all frames are right")
WANTED = Wanted(app=application("fpd"), split=(6, 13, 3), seconds=20.0)


def ran(verdict: Verdict | None, *, recorded: bool = True) -> ApplicationRun:
    return ApplicationRun(
        name="fpd",
        seconds=20.0,
        records=surge() if recorded else [],
        arrived=100,
        verdict=verdict,
    )


def run_that_gives(monkeypatch: pytest.MonkeyPatch, one: ApplicationRun) -> ApplicationRun:
    monkeypatch.setattr(runs, "run_application", lambda *given, **options: one)
    return run(None, WANTED)  # type: ignore[arg-type]


def test_a_run_to_its_end_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_that_gives(monkeypatch, ran(RIGHT)).verdict is RIGHT


def test_a_run_that_was_stopped_stops_the_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_that_gives(monkeypatch, ran(None))


def test_a_run_without_records_is_too_short(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TidegateError, match="too short"):
        run_that_gives(monkeypatch, ran(RIGHT, recorded=False))


def test_wrong_answers_are_told() -> None:
    wrong = Verdict(correct=False, said="a pattern is missing")
    assert wrong_answers([ran(RIGHT), ran(wrong)]) == ["fpd: a pattern is missing"]
