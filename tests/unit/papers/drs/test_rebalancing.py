"""What figure 8 makes of runs that begin with a right and with wrong splits."""

import pytest

from tests.helpers.pipeline_worlds import measured
from tidegate.control.decision import hold
from tidegate.control.record import Record
from tidegate.models.queueing.stations import Queues
from tidegate.papers.measured import queues_of


def records(begins: int, rate: float, seconds: int = 40) -> list[Record]:
    """A run with so many rows per second."""
    return [
        Record(
            tick=tick,
            policy="drs-fixed",
            target_s=60.0,
            measurement=measured(begins + tick, cores=4, rate=rate),
            decision=hold(""),
            acted=False,
        )
        for tick in range(seconds)
    ]


def queues(*runs: list[Record]) -> Queues:
    (operator,) = (one.name for one in runs[0][0].measurement.operators)
    return queues_of(runs, (operator,), "mmk")


def test_the_time_between_two_runs_is_no_time_without_load() -> None:
    one = queues(records(0, 100.0))
    both = queues(records(0, 100.0), records(5000, 100.0))
    assert list(both.load) == pytest.approx(list(one.load))
