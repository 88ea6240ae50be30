"""lambda_i from counts within batches, against the traffic equations of a known pipeline."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.learning.offered_rates import OfferedRates
from tidegate.control.measurement import (
    BatchMeasurement,
    Measurement,
    OperatorMeasurement,
    SegmentMeasurement,
)


def tick(
    at: int, taken: dict[str, int], handed: dict[str, dict[str, int]], **changes: object
) -> Measurement:
    """A tick in which a batch of each segment took these rows; each has one operator."""
    segments = tuple(
        SegmentMeasurement(
            name=name,
            arrival_rate=0.0,
            backlog_rows=0.0,
            tasks=1,
            handed=handed.get(name, {}),
            batches=(
                BatchMeasurement(
                    batch_id=at, rows=rows, tasks=1, imbalance=1.0, duration_s=1.0, ended_s=at
                ),
            ),
        )
        for name, rows in taken.items()
    )
    segments = (
        *segments[:1],
        *(dataclasses.replace(one, **changes) for one in segments[1:]),
    )
    operators = tuple(
        OperatorMeasurement(
            name=f"in {name}", segment=name, arrival_rate=0.0, service_rate=1.0, rows=rows
        )
        for name, rows in taken.items()
    )
    return Measurement(
        at_s=float(at),
        interval_s=1.0,
        arrival_rate=0.0,
        processed_rate=0.0,
        backlog_rows=0.0,
        cores_asked=1,
        cores_granted=1,
        saturated=False,
        operators=operators,
        segments=segments,
    )


@given(
    first=st.lists(st.integers(0, 500), min_size=1, max_size=20),
    second=st.lists(st.integers(0, 500), min_size=20, max_size=20),
    fan_out=st.sampled_from([0, 1, 3]),
)
def test_a_chain_that_is_throttled_or_lags_has_its_share_of_the_load(
    first: list[int], second: list[int], fan_out: int
) -> None:
    rates = OfferedRates()
    for at, rows in enumerate(first):
        taken = {"main": rows, "later": second[at] if fan_out else 0}
        rates.learn(tick(at, taken, {"main": {"later": fan_out * rows} if rows else {}}))
    found = rates.rate("in later", "later", 100.0)
    if found is not None:
        assert found == pytest.approx(100.0 * fan_out)


def test_a_loop_counts_every_pass() -> None:
    rates = OfferedRates()
    for at in range(5):
        rates.learn(tick(at, {"main": 200}, {"main": {"main": 120}}))
    assert rates.rate("in main", "main", 10.0) == pytest.approx(10.0 / (1.0 - 0.6))


def test_rows_that_are_multiplied_before_a_loop_are_not_more_passes() -> None:
    rates = OfferedRates()
    handed = {"main": {"later": 400}, "later": {"later": 42, "end": 10}}
    one = tick(0, {"main": 100, "later": 442, "end": 0}, handed)
    later = dataclasses.replace(one.segments[1], loops=True)
    rates.learn(dataclasses.replace(one, segments=(one.segments[0], later, one.segments[2])))
    looped = 42 / 442
    assert rates.visits("later") == pytest.approx(4.0 / (1.0 - looped))
    assert rates.passes("later") == pytest.approx(1.0 / (1.0 - looped))


def test_an_endless_loop_has_no_rate() -> None:
    rates = OfferedRates()
    rates.learn(tick(0, {"main": 100}, {"main": {"main": 150}}))
    assert rates.rate("in main", "main", 10.0) is None
    as_many = OfferedRates()
    as_many.learn(tick(0, {"main": 100}, {"main": {"main": 100}}))
    assert as_many.rate("in main", "main", 10.0) is None


def test_segments_whose_rows_come_from_elsewhere_are_not_guessed() -> None:
    apart = OfferedRates()
    apart.learn(tick(0, {"main": 100, "later": 50}, {}, apart=True))
    assert apart.rate("in later", "later", 10.0) is None
    unknown = OfferedRates()
    unknown.learn(tick(0, {"main": 100, "later": 50}, {}))
    assert unknown.rate("in later", "later", 10.0) is None


def test_without_batches_nothing_is_known() -> None:
    assert OfferedRates().rate("in main", "main", 10.0) is None
