"""Ctrl-C while pipelines run: no job is cancelled, and no traceback of ours is printed."""

import signal
import sys

import pytest

from tidegate.spark import interrupt


def pysparks(calls: list[int]):
    """A handler like the one that PySpark installs."""

    def handle(number, frame):
        calls.append(number)

    handle.__module__ = "pyspark.core.context"
    return handle


@pytest.fixture(autouse=True)
def put_back(monkeypatch):
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    yield
    signal.signal(signal.SIGINT, before)


def test_jobs_are_cancelled_only_when_no_pipeline_runs():
    calls: list[int] = []
    active = [True]
    signal.signal(signal.SIGINT, pysparks(calls))
    interrupt.leave_batches_alone(lambda: active[0])
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert calls == []
    active[0] = False
    signal.raise_signal(signal.SIGINT)
    assert calls == [signal.SIGINT]


@pytest.mark.parametrize("own", [signal.SIG_IGN, signal.SIG_DFL, lambda number, frame: None])
def test_a_handler_that_is_not_pysparks_stays(own):
    signal.signal(signal.SIGINT, own)
    interrupt.leave_batches_alone(lambda: True)
    assert signal.getsignal(signal.SIGINT) is own


def test_an_interrupt_that_nobody_catches_prints_one_line(capsys):
    for _ in range(2):  # a second run in the same process
        stopped = interrupt.stopped_by(KeyboardInterrupt(), "shop", "after batch 3")
        assert type(stopped) is KeyboardInterrupt  # Python exits by SIGINT for this very type only
        sys.excepthook(KeyboardInterrupt, stopped, None)
        assert capsys.readouterr().err == (
            "pipeline 'shop' was stopped by Ctrl-C, after batch 3; start it again to go on\n"
        )
    sys.excepthook(ValueError, ValueError("another"), None)
    assert "ValueError: another" in capsys.readouterr().err
