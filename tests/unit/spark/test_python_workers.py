"""The job that starts Python workers ahead of time never disturbs anybody."""

import threading
from types import SimpleNamespace

from tidegate.spark import python_workers


def test_a_job_that_dies_prints_nothing(monkeypatch, capsys):
    told = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    monkeypatch.setattr(python_workers, "_begun", set())
    dead = SimpleNamespace(
        applicationId="app",
        defaultParallelism=2,
        _jsc=SimpleNamespace(sc=lambda: SimpleNamespace(isLocal=lambda: True)),
    )

    def gone(*given):
        dead._jsc = None  # as SparkContext.stop leaves it
        raise ConnectionResetError("Spark is gone")

    dead.setJobGroup = gone
    thread = python_workers.start_workers(SimpleNamespace(sparkContext=dead))
    assert thread is not None
    thread.join(30)
    assert not thread.is_alive()
    assert told == [] and capsys.readouterr() == ("", "")
