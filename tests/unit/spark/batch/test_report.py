"""Reports of tasks on their way to the driver."""

import logging
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pyarrow as pa

from tidegate.spark.batch.report import without_tracebacks
from tidegate.spark.batch.worker import ReceivedBlocks


def test_a_connection_that_spark_closes_is_logged_and_other_errors_are_printed(caplog):
    printed = []
    server = SimpleNamespace(handle_error=lambda request, address: printed.append(address))
    without_tracebacks(server)
    without_tracebacks(server)
    without_tracebacks(None)
    with caplog.at_level(logging.DEBUG, "tidegate"):
        for error in (EOFError(), ConnectionResetError(), ValueError("a wrong token")):
            try:
                raise error
            except Exception as now:
                server.handle_error(None, repr(now))
    assert printed == ["ValueError('a wrong token')"]
    assert len(caplog.records) == 2


def test_received_blocks_tell_their_size_and_the_wait() -> None:
    """The time between two blocks is the task's own, and is no wait."""
    block = pa.record_batch({"n": pa.array(range(100), pa.int64())})

    def blocks() -> Iterator[pa.RecordBatch]:
        for _ in range(2):
            time.sleep(0.02)
            yield block

    received = ReceivedBlocks(blocks())
    begun_s = time.perf_counter()
    for _ in received:
        time.sleep(0.1)
    took_s = time.perf_counter() - begun_s
    assert received.bytes == 2 * block.nbytes == 1600
    assert 0.04 <= received.waited_s <= took_s - 0.2
