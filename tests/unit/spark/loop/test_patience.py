"""Calls that may hang are waited for only so long."""

import threading

import pytest

from tidegate.spark.loop.patience import Answered, NoAnswer, Patience


def test_a_call_that_returns_gives_its_value_or_its_error() -> None:
    calls = Answered("a request")
    assert calls.call(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        calls.call(lambda: 1 // 0)
    assert calls.call(lambda: None) is None


def test_a_call_that_hangs_is_given_up_and_no_other_piles_up_behind_it() -> None:
    free = threading.Event()
    begun: list[int] = []

    def hangs() -> None:
        begun.append(1)
        free.wait()

    calls = Answered("a request", patience_s=0.01)
    for _ in range(3):
        with pytest.raises(NoAnswer, match="a request has had no answer for 0 s"):
            calls.call(hangs)
    assert begun == [1]
    pending = calls._pending
    free.set()
    pending.join()
    assert calls.call(lambda: "again") == "again"


def test_tries_wait_longer_and_come_rarer_up_to_a_bound() -> None:
    now_s = [0.0]
    patience = Patience(lambda: now_s[0])
    waited_s = []
    for _ in range(8):
        assert patience.due
        waited_s.append(patience.patience_s)
        patience.failed()
        assert not patience.due
        now_s[0] += 4.0 * waited_s[-1]
    assert waited_s == [2.0, 6.0, 18.0, 54.0, 162.0, 180.0, 180.0, 180.0]
    patience.failed()
    patience.reset()
    assert patience.due and patience.patience_s == 2.0
