"""Who puts a thing in never waits and never fails, whatever the receiver does."""

import logging
import threading

import pytest

from tidegate.logs import PipelineLogger
from tidegate.spark.notices.outbox import ROOM, NotDelivered, Outbox, Pause

PATIENCE_S = 30.0
LOG = PipelineLogger("notices", "shop")


def test_things_arrive_in_order_and_before_it_is_closed() -> None:
    taken: list[int] = []
    outbox: Outbox[int] = Outbox("a list", lambda thing, wait: taken.append(thing), LOG)
    for number in range(20):
        outbox.put(number)
    outbox.close(PATIENCE_S)
    assert taken == list(range(20))


def test_without_a_thing_there_is_no_thread() -> None:
    before = threading.active_count()
    outbox: Outbox[int] = Outbox("nobody", lambda thing, wait: None, LOG)
    assert threading.active_count() == before
    outbox.close(PATIENCE_S)


def test_one_that_hangs_holds_up_nobody(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tidegate")
    goes_on, begun = threading.Event(), threading.Event()

    def hang(thing: int, wait: Pause) -> None:
        begun.set()
        goes_on.wait(PATIENCE_S)

    outbox: Outbox[int] = Outbox("the function f", hang, LOG)
    outbox.put(0)
    assert begun.wait(PATIENCE_S)
    for number in range(3 * ROOM):
        outbox.put(number)
    outbox.close(0.0)
    lines = [one.getMessage() for one in caplog.records]
    assert len(lines) == 1
    assert lines[0].startswith("shop: the function f did not take a notice: it has not taken any")
    goes_on.set()
    outbox.close(PATIENCE_S)
    assert outbox._thread is not None and not outbox._thread.is_alive(), "it ends all the same"


def test_a_failure_and_the_recovery_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tidegate")
    errors = [NotDelivered("it answered 500"), KeyError("x"), SystemExit(3)]

    def send(thing: int, wait: Pause) -> None:
        if thing < len(errors):
            raise errors[thing]

    outbox: Outbox[int] = Outbox("the webhook at http://h", send, LOG)
    for number in range(5):
        outbox.put(number)
    outbox.close(PATIENCE_S)
    assert [one.getMessage() for one in caplog.records] == [
        "shop: the webhook at http://h did not take a notice: it answered 500. Further failures are"
        " not logged; the log has all notices",
        "shop: the webhook at http://h works again; it missed 3 notices",
    ]


def test_a_receiver_may_close_it_itself() -> None:
    closed = threading.Event()

    def send(thing: int, wait: Pause) -> None:
        outbox.close(PATIENCE_S)
        closed.set()

    outbox: Outbox[int] = Outbox("one that ends the run", send, LOG)
    outbox.put(1)
    assert closed.wait(PATIENCE_S)


def test_a_pause_is_cut_short_when_it_is_closed() -> None:
    waiting, cut = threading.Event(), []

    def send(thing: int, wait: Pause) -> None:
        waiting.set()
        cut.append(wait(PATIENCE_S))

    outbox: Outbox[int] = Outbox("a slow one", send, LOG)
    outbox.put(1)
    assert waiting.wait(PATIENCE_S)
    outbox.close(PATIENCE_S)
    assert cut == [True]
