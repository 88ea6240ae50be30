"""A run within a comparison: what it asks for, what it says meanwhile, and how Ctrl-C ends it."""

from typing import Any

import pytest

from tests.unit.papers.flink_er.made_up import rescaled_run
from tidegate.apps.application import Verdict
from tidegate.apps.run_application import ApplicationRun
from tidegate.papers.flink_er import runs
from tidegate.papers.flink_er.experiments import LEARNING, WORDCOUNT, LoadExperiment
from tidegate.papers.flink_er.runs import FLOW, STATIC, Strategy, run

RIGHT = Verdict(correct=True, said="all words are right")


def started(
    monkeypatch: pytest.MonkeyPatch,
    experiment: LoadExperiment,
    strategy: Strategy,
    verdict: Verdict | None = RIGHT,
) -> tuple[dict[str, Any], list[str]]:
    """The options that a run is started with, and what it says."""
    given: dict[str, Any] = {}
    said: list[str] = []

    def instead(spark: object, app: object, settings: object, **options: Any) -> ApplicationRun:
        given.update(options, settings=settings)
        for record in rescaled_run():
            options["on_record"](record)
        return ApplicationRun(
            name="made-up", seconds=90.0, records=rescaled_run(), arrived=100, verdict=verdict
        )

    monkeypatch.setattr(runs, "run_application", instead)
    run(None, experiment, strategy, minute_s=2.0, say=said.append)  # type: ignore[arg-type]
    return given, said


def test_static_has_six_cores_and_the_others_four_more(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed, _ = started(monkeypatch, WORDCOUNT, STATIC)
    assert (fixed["policy"], fixed["cores"]) == ("static", 6)
    flow, _ = started(monkeypatch, WORDCOUNT, FLOW)
    assert (flow["policy"], flow["cores"]) == ("flow", (6, 10))
    assert fixed["split"] == flow["split"] == {"split": 6, "count": 6}
    assert fixed["settings"].stretch and not fixed["settings"].cut


def test_an_operator_with_one_task_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    given, _ = started(monkeypatch, LEARNING, FLOW)
    assert given["split"] == {"gradient": 6, "model": 1}
    assert given["settings"].extra == {"round": "2048"}


def test_it_says_how_it_goes_every_three_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    _, said = started(monkeypatch, WORDCOUNT, FLOW)
    begins = [line.partition(":")[0] for line in said]
    assert begins == [f"WordCount, flow, minute {minute}" for minute in (3, 6, 9)]
    assert "8 cores" in said[-1]


def test_a_run_that_was_stopped_stops_the_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt):
        started(monkeypatch, WORDCOUNT, FLOW, None)
