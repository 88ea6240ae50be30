"""Reports of tasks on their way to the driver."""

import logging
from types import SimpleNamespace

from tidegate.spark.batch.report import without_tracebacks


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
