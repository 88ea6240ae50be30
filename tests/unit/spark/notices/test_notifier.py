"""A loop's notices reach the log, its records, a real webhook and a function."""

import logging
import threading
from dataclasses import replace

import pytest

from tests.helpers.hook_server import hook_server
from tests.helpers.pipeline_worlds import measured
from tidegate.control.control_failure import ControlFailure
from tidegate.control.decision import hold
from tidegate.control.notice import CONTROL_FAILED, SHEDDING, Notice
from tidegate.control.record import Record
from tidegate.spark.notices import webhook
from tidegate.spark.notices.notifier import Notifier
from tidegate.spark.notices.receivers import NotifySettings

PATIENCE_S = 30.0
KEEPS = (1.0, 0.5, 0.5)
"""Shedding begins with the second tick."""


def record(tick: int, keep: float = 1.0) -> Record:
    return Record(
        tick=tick,
        policy="latency",
        target_s=2.0,
        measurement=replace(measured(tick), keep=keep),
        decision=replace(hold("nothing"), notes=("a note",)),
        acted=False,
    )


def end_s(tick: int) -> float:
    return record(tick).measurement.at_s


class Told:
    """A function that remembers what it was told."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []
        self._changed = threading.Condition()

    def __call__(self, notice: Notice) -> None:
        with self._changed:
            self.notices.append(notice)
            self._changed.notify_all()

    def until(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.notices) == count, PATIENCE_S)


def test_everybody_is_told_the_beginning_and_the_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tidegate")
    told = Told()
    with hook_server() as hook:
        notifier = Notifier("shop", NotifySettings((hook.url,), (told,)))
        first, second, third = (notifier.observed(record(n, keep)) for n, keep in enumerate(KEEPS))
        notifier.close(end_s(5))
        kinds = [(post["kind"], post["state"]) for post in hook.posts]
        assert kinds == [(SHEDDING, "began"), (SHEDDING, "ended")]
        assert hook.posts[0]["text"].startswith("shop: rows are shed: 50 % are kept")
        assert hook.posts[0]["figures"]["cores_granted"] == 2.0
        assert hook.posts[0]["since"] == "2023-11-14T22:13:21.000+00:00"
    assert [one.ended for one in told.notices] == [False, True]
    assert (first.notices, third.notices) == ((), ())
    assert second.notices == (told.notices[0],)
    assert second.decision.notes == ("a note", told.notices[0].what)
    lines = [(one.levelname, one.name, one.getMessage()) for one in caplog.records]
    assert lines[0][:2] == ("WARNING", "tidegate.notices")
    assert lines[0][2].startswith("shop: rows are shed")
    assert lines[1] == (
        "INFO",
        "tidegate.notices",
        "shop: the run ended while rows were shed, after 4 s",
    )
    assert "SECRET" not in caplog.text and "ALSO" not in caplog.text


def test_a_hook_that_fails_is_logged_once_and_holds_up_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "PAUSES_S", (0.0, 0.0))
    caplog.set_level(logging.INFO, "tidegate")
    with hook_server() as hook:
        hook.answers = [500] * 6
        notifier = Notifier("shop", NotifySettings((hook.url,)))
        flutter(notifier, 4)
        hook.until(lambda: len(hook.posts) == 8)
        notifier.close(end_s(1000))
    about = [one.getMessage() for one in caplog.records if "webhook" in one.getMessage()]
    assert len(about) == 2, "once that it fails, once that it works again"
    assert "did not take a notice: it answered 500" in about[0]
    assert "works again; it missed 2 notices" in about[1]
    assert "SECRET" not in caplog.text and "ALSO" not in caplog.text


def flutter(notifier: Notifier, notices: int) -> None:
    """Begin and end shedding in turn; the next notice follows once the last was taken."""
    for number in range(notices):
        for tick in range(20):
            notifier.observed(record(20 * number + tick, 1.0 if number % 2 else 0.5))


def test_a_hook_that_hangs_holds_up_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with hook_server() as hook:
        hook.hangs = True
        notifier = Notifier("shop", NotifySettings((hook.url,)))
        flutter(notifier, 200)
        hook.until(lambda: len(hook.posts) == 1)
        hook.closed.set()
    assert sum(one.name == "tidegate.notices" for one in caplog.records) >= 100
    assert sum("did not take a notice" in one.getMessage() for one in caplog.records) == 1


def test_failures_are_told_before_there_is_a_record_again() -> None:
    told = Told()
    with hook_server() as hook:
        notifier = Notifier("shop", NotifySettings((hook.url,), (told,)))
        for ticks in (1, 2, 3):
            failure = ControlFailure(end_s(0), ticks, "OSError: no route")
            notifier.failed(failure, end_s(ticks))
        hook.until(lambda: len(hook.posts) == 1)
        assert hook.posts[0]["kind"] == CONTROL_FAILED
        next_record = notifier.observed(record(10))
        assert [one.kind for one in next_record.notices] == [CONTROL_FAILED]
        assert notifier.observed(record(11)).notices == ()
        notifier.close(end_s(12))
    assert [one.ended for one in told.notices] == [False, True]


def test_other_receivers_from_now_on() -> None:
    before, after = Told(), Told()
    notifier = Notifier("shop", NotifySettings(functions=(before,)))
    notifier.observed(record(0, 0.5))
    notifier.change(NotifySettings(functions=(after,), after_s=5.0))
    for tick in range(1, 40):
        notifier.observed(record(tick))
    notifier.close(end_s(40))
    before.until(1)
    assert [one.ended for one in before.notices] == [False]
    assert [one.ended for one in after.notices] == [True]
    assert after.notices[0].since_s == before.notices[0].since_s


def test_a_function_that_hangs_does_not_keep_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.spark.notices.notifier.LAST_S", 0.01)
    goes_on = threading.Event()

    def hang(notice: Notice) -> None:
        goes_on.wait(PATIENCE_S)

    notifier = Notifier("shop", NotifySettings(functions=(hang,)))
    notifier.observed(record(0, 0.5))
    notifier.close(end_s(1))
    goes_on.set()
