"""A segment waits for the reader of its channel."""

import threading

import pytest

from tidegate.spark.batch import backpressure
from tidegate.spark.batch.backpressure import MOST_WAITING, Backpressure
from tidegate.spark.batch.channel import Log
from tidegate.spark.state.files import Durable


@pytest.fixture
def full(tmp_path, monkeypatch) -> Log:
    monkeypatch.setattr(backpressure, "_POLL_S", 0.001)
    log = Log(Durable(str(tmp_path)))
    log.make()
    for batch_id in range(MOST_WAITING + 1):
        log.commit(batch_id, batch_id - 1, [("f", 1)])
    return log


def test_a_segment_waits_until_its_reader_has_caught_up(full, caplog):
    pressure, passed = Backpressure("main", {"between": full}), threading.Event()

    def wait() -> None:
        pressure.wait(16, lambda: False)
        passed.set()

    pressure.wait(17, lambda: pytest.fail("only every few batches are looked at"))
    waiting = threading.Thread(target=wait)
    waiting.start()
    assert not passed.wait(0.05)
    full.note_read(100)  # it cannot be forgotten, which costs only space
    assert passed.wait(10)
    waiting.join()
    assert "segment 'main' waits before batch 16: the reader of channel 'between'" in caplog.text


def test_a_segment_that_stops_does_not_wait(full):
    Backpressure("main", {"between": full}).wait(0, lambda: True)
