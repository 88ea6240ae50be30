"""Cleaning up behind the batches."""

import logging
import threading

from tidegate.spark.batch.cleaner import Cleaner


def test_a_job_that_fails_is_logged_once_and_the_next_one_runs(caplog):
    cleaner, ran = Cleaner("shop"), threading.Event()

    def fail() -> None:
        raise OSError("the disk is gone")

    with caplog.at_level(logging.WARNING, "tidegate"):
        cleaner.later("a", fail)
        cleaner.later("b", fail)
        cleaner.later("c", ran.set)
        cleaner.close(10)
    assert ran.is_set()
    assert [record.getMessage() for record in caplog.records] == [
        "pipeline 'shop': old files could not be removed (the disk is gone); that is tried again "
        "after later batches"
    ]


def test_a_job_replaces_one_of_its_name_that_has_not_begun():
    cleaner, begun, go_on = Cleaner("shop"), threading.Event(), threading.Event()
    ran: list[str] = []

    def first() -> None:
        begun.set()
        go_on.wait(10)
        ran.append("first")

    cleaner.later("main", first)
    assert begun.wait(10)
    cleaner.later("main", lambda: ran.append("second"))
    cleaner.later("main", lambda: ran.append("third"))
    go_on.set()
    cleaner.close(10)
    assert ran == ["first", "third"]


def test_closing_does_not_wait_for_ever_for_a_job_that_hangs():
    cleaner, never = Cleaner("shop"), threading.Event()
    cleaner.later("main", never.wait)
    cleaner.close(0.01)
    never.set()


def test_nothing_is_removed_while_it_is_held():
    cleaner, begun, go_on = Cleaner("shop"), threading.Event(), threading.Event()
    ran: list[str] = []

    def first() -> None:
        begun.set()
        go_on.wait(10)
        ran.append("first")

    cleaner.later("main", first)
    assert begun.wait(10)
    threading.Timer(0.05, go_on.set).start()
    with cleaner.held():
        assert ran == ["first"], "a job that runs is waited for"
        cleaner.later("main", lambda: ran.append("second"))
        with cleaner.held():
            assert ran == ["first"]
        assert not threading.Event().wait(0.05) and ran == ["first"]
    cleaner.close(10)
    assert ran == ["first", "second"]
