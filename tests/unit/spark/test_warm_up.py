"""What is said of a warm-up, and that it ends whatever Spark does."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.spark import warm_up as warming
from tidegate.spark.warm_up import WarmUp, warm_up


def dead_session(cancelled: list[str], new_session: Any) -> Any:
    context = SimpleNamespace(
        applicationId="app",
        _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(isLocal=lambda: True)),
        cancelJobGroup=cancelled.append,
    )
    return SimpleNamespace(sparkContext=context, newSession=new_session)


def test_what_is_said() -> None:
    assert WarmUp(3.2, frozenset()).words == "warmed up for 3.2 s before the first row"
    failed = WarmUp(30.0, frozenset(), "it took longer than 30 s").words
    assert failed == (
        "the warm-up ended early after 30 s (it took longer than 30 s); first batches may be slow"
    )


def test_an_error_is_noted_and_raised_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def gone() -> None:
        raise ConnectionResetError("Spark is gone")

    with caplog.at_level("INFO", "tidegate"):
        done = warm_up(dead_session([], gone), "ads", [], 2)
    assert done.failed == "ConnectionResetError: Spark is gone"
    (line,) = caplog.messages
    assert line == f"ads: {done.words}"


def test_it_does_not_wait_for_a_spark_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = threading.Event()
    monkeypatch.setattr(warming, "PATIENCE_S", 0.01)
    cancelled: list[str] = []
    try:
        done = warm_up(dead_session(cancelled, answer.wait), "ads", [], 2)
    finally:
        answer.set()
    assert done.failed == "it took longer than 0.01 s"
    assert len(cancelled) == 1 and cancelled[0].startswith("tidegate-warm-up-")
