"""Executors get neither killed for want of memory nor more cores than that takes."""

import dataclasses
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.control.flow.test_bottleneck import operator, tick
from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.executors.memory_outlook import AIM, MemoryOutlook
from tidegate.control.executors.with_memory import WithMemory
from tidegate.control.measurement import (
    BatchMeasurement,
    ExecutorMeasurement,
    Measurement,
    SegmentMeasurement,
)
from tidegate.control.shards.route import even_route

BASE, LIMIT = 100_000_000, 1_000_000_000


def measured(
    rows: int,
    own: Sequence[float],
    *,
    cores: int = 4,
    backlog: float = 0.0,
    parts: int = 1,
    number: int = 0,
    asked: int | None = None,
) -> Measurement:
    """A tick whose executors took so many bytes for a batch of so many rows."""
    one = operator("count", 0.001, tasks=cores, route=even_route(256, cores), parts=parts)
    batch = BatchMeasurement(
        batch_id=number, rows=rows, tasks=cores, imbalance=1.0, duration_s=1.0, ended_s=1.0
    )
    segment = SegmentMeasurement(
        name="main",
        arrival_rate=rows,
        backlog_rows=backlog,
        tasks=cores,
        batches=(batch,),
        between=True,
    )
    executors = tuple(
        ExecutorMeasurement(
            name=f"h{place}:/w/{place}",
            memory_bytes=BASE + round(size),
            base_bytes=BASE,
            limit_bytes=LIMIT,
            parts=parts,
        )
        for place, size in enumerate(own)
    )
    return dataclasses.replace(
        tick(one, number=number),
        segments=(segment,),
        executors=executors,
        cores_granted=cores,
        cores_asked=asked or cores,
    )


class Content:
    """Asks for nothing, but keeps to its bounds."""

    name = "content"

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        self.allowed = constraints.allowed
        return hold("all is well")


def decided(policy: WithMemory, one: Measurement, most: int = 16) -> Decision:
    return policy.decide(one, Constraints(Bounds(1, most)))


def test_cores_are_added_before_an_executor_is_full_and_the_reason_says_so() -> None:
    inner = Content()
    policy = WithMemory(inner, 2)
    assert decided(policy, measured(1000, [400e6, 300e6])).holds
    decision = decided(policy, measured(1000, [700e6, 300e6], number=1))
    assert decision.cores == 6
    assert decision.reason.startswith(
        "memory: executor 0 on h0 has used 80 % of 1.0 GB; with 6 cores instead of 4 it will be"
        " about 57 %; all is well"
    )
    assert not decision.parts
    after = decided(policy, measured(1000, [467e6] * 3, cores=6, number=2))
    assert after.holds and inner.allowed == Bounds(6, 16), "the cores are kept for it"
    calm = [
        decided(policy, measured(1000, [50e6] * 3, cores=6, number=3 + step)) for step in range(99)
    ]
    assert all(one.holds for one in calm) and inner.allowed.least == 1, "and let go one day"


def test_a_batch_that_is_too_large_is_processed_in_parts() -> None:
    policy = WithMemory(Content())
    decided(policy, measured(1000, [300e6] * 4))
    decision = decided(policy, measured(1000, [300e6] * 4, backlog=5000.0, number=1))
    assert decision.parts == {"count": 3} and decision.cores is None
    assert (
        "5,000 rows at once would take 160 % of the 1.0 GB of executor 0 on h0" in decision.reason
    )
    assert "tasks of 'count' work in 3 parts" in decision.reason
    three = measured(5000, [500e6] * 4, backlog=5000.0, parts=3, number=2)
    assert not decided(policy, three).parts, "it stays so while rows wait"
    usual = [decided(policy, measured(1000, [100e6] * 4, parts=3, number=3 + n)) for n in range(9)]
    assert usual[0].parts == {"count": 1}
    assert "fit at once again" in usual[0].reason


def test_at_the_maximum_parts_are_what_is_left() -> None:
    policy = WithMemory(Content())
    decision = decided(policy, measured(1000, [850e6] * 4), most=4)
    assert decision.cores is None and decision.parts == {"count": 2}


def test_more_cores_are_not_asked_for_again_and_again_where_they_do_not_help() -> None:
    """One key has most of the rows, so its executor is as full on more cores."""
    policy = WithMemory(Content())
    cores = 4
    for number in range(20):
        decision = decided(policy, measured(1000, [750e6, 1e6], cores=cores, number=number), 64)
        cores = decision.cores or cores
    assert cores == 5 or cores <= 8


def test_what_tells_no_limit_or_nearly_nothing_asks_for_nothing() -> None:
    policy = WithMemory(Content())
    one = measured(10, [30e6] * 2, backlog=1e6)
    assert decided(policy, one).holds, "so little is no guide to so many rows"
    free = dataclasses.replace(one.executors[0], limit_bytes=None, memory_bytes=10**12)
    assert decided(policy, dataclasses.replace(one, executors=(free,))).holds
    assert decided(policy, dataclasses.replace(one, executors=())).holds


@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 10**6),
    st.floats(1e6, 5e9),
    st.integers(1, 64),
    st.floats(1.0, 1e7),
)
def test_the_cores_and_parts_of_an_outlook_are_the_fewest_that_fit(
    rows: int, own: float, cores: int, next_rows: float
) -> None:
    outlook = MemoryOutlook()
    outlook.observe(measured(rows, [own], cores=cores))
    needed = outlook.cores_for(next_rows)
    assert needed is not None
    assert outlook.fullness(next_rows, needed) <= AIM + 1e-9
    if needed > 1:
        assert outlook.fullness(next_rows, needed - 1) > AIM - 1e-9
    parts = outlook.parts_for(next_rows, cores)
    assert outlook.fullness(next_rows / parts, cores) <= AIM + 1e-9
    assert outlook.fullness(rows, cores) == pytest.approx(
        (BASE + own) / LIMIT if own > 0.1 * LIMIT else BASE / LIMIT, rel=1e-6
    )


class Eager:
    """Asks for so many cores, whatever is measured."""

    name = "eager"

    def __init__(self, cores: int) -> None:
        self._cores = cores

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        return Decision(reason="the load grows", cores=self._cores)


def test_memory_says_nothing_of_one_executor_of_many_cores() -> None:
    """The least there can be is one executor, also where nothing is known of its memory."""
    unknown = dataclasses.replace(measured(1000, []), cores_asked=2)
    assert decided(WithMemory(Eager(8), 8), unknown).reason == "the load grows"
    known = dataclasses.replace(measured(1000, [100e6]), cores_asked=2)
    assert decided(WithMemory(Eager(8), 8), known).reason == "the load grows"
