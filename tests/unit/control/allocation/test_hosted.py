"""Maps that run in the tasks of another operator are part of its station."""

import dataclasses

import pytest

from tests.helpers.deciding import plain
from tests.unit.control.allocation.test_drs import BOUNDS, measured
from tidegate.control.allocation.drs import DrsFixed
from tidegate.control.allocation.hosted import only_stations
from tidegate.control.measurement import Measurement, OperatorMeasurement


def with_hosted() -> Measurement:
    """Three operators, a spout before them and a map in the tasks of the second."""
    one = measured((8, 12, 2))
    busy = tuple(
        dataclasses.replace(each, rows=13, busy_s=13 / each.service_rate) for each in one.operators
    )
    spout = OperatorMeasurement(
        name="spout", arrival_rate=13.0, service_rate=100.0, tasks=2, inside="source", busy_s=0.1
    )
    after = OperatorMeasurement(
        name="after", arrival_rate=13.0, service_rate=50.0, tasks=12, inside="match", busy_s=0.26
    )
    return dataclasses.replace(one, operators=(spout, *busy[:2], after, busy[2]))


def test_their_time_is_part_of_the_operator_that_runs_them() -> None:
    found = only_stations(with_hosted())
    assert [one.name for one in found.operators] == ["extract", "match", "aggregate"]
    assert [one.service_rate for one in found.operators] == pytest.approx(
        [1.6, 1.0 / (1.0 / 1.45 + 0.02), 40.0]
    )


def test_they_get_no_cores() -> None:
    policy = plain(DrsFixed(22), BOUNDS)
    for _ in range(8):
        decision = policy.decide(with_hosted())
    assert decision.tasks == {"extract": 10, "match": 11, "aggregate": 1}


def test_without_them_nothing_changes() -> None:
    assert only_stations(measured()) == measured()
