"""What the queueing model does not include grows with the load as micro-batches do."""

import dataclasses

import pytest

from tests.unit.control.allocation.test_drs import measured
from tidegate.control.allocation.unseen import Unseen
from tidegate.control.measurement import Measurement, SegmentMeasurement
from tidegate.models.queueing.stations import Queues

SERVED = [1.6, 1.45, 40.0]


def batched(tasks: tuple[int, ...], latency_s: float, waiting_s: float) -> Measurement:
    """Each operator a segment; rows of `waiting_s` are waiting in all of them together."""
    one = measured(tasks, latency_s=latency_s)
    segments = tuple(
        SegmentMeasurement(
            name=each.name, arrival_rate=13.0, backlog_rows=13.0 * waiting_s / 3, tasks=each.tasks
        )
        for each in one.operators
    )
    operators = tuple(dataclasses.replace(each, segment=each.name) for each in one.operators)
    return dataclasses.replace(one, operators=operators, segments=segments)


def sojourn_s(fixed_s: float, queues: Queues, tasks: tuple[int, ...]) -> float:
    """The model's, and fixed_s / (1 - rho) for each segment."""
    rhos = [load / count for load, count in zip(queues.load.tolist(), tasks, strict=True)]
    return float(queues.network_latency(tasks)) + sum(fixed_s / (1.0 - rho) for rho in rhos)


def test_what_one_load_shows_holds_for_other_cores() -> None:
    queues = Queues.of([13.0] * 3, SERVED)
    unseen = Unseen()
    latency_s = sojourn_s(0.4, queues, (12, 13, 2))
    unseen.learn(queues, batched((12, 13, 2), latency_s, latency_s))
    assert unseen.factor_s == pytest.approx(0.4)
    other = batched((10, 11, 1), 1.0, 1.0)
    expected = sojourn_s(0.4, queues, (10, 11, 1)) - float(queues.network_latency([10, 11, 1]))
    assert unseen.of(queues, other, (10, 11, 1)) == pytest.approx(expected)
    assert unseen.of(queues, other, (8, 11, 1)) == float("inf")


def test_nothing_is_learned_while_a_backlog_is_worked_off() -> None:
    queues = Queues.of([13.0] * 3, SERVED)
    unseen = Unseen()
    unseen.learn(queues, batched((12, 13, 2), 30.0, 3.0))
    assert unseen.factor_s == 0.0


def test_operators_of_one_segment_take_turns() -> None:
    queues = Queues.of([13.0] * 3, SERVED)
    unseen = Unseen()
    unseen.learn(queues, measured((22, 22, 22), latency_s=3.0))
    one = measured((22, 22, 22))
    whole = SegmentMeasurement(name="main", arrival_rate=13.0, backlog_rows=26.0, tasks=22)
    together = dataclasses.replace(one, segments=(whole,))
    rho = float(queues.load.sum()) / 22
    assert unseen.of(queues, together, (22, 22, 22)) == pytest.approx(unseen.factor_s / (1.0 - rho))
