"""Visit ratios do not depend on how the load changes, and rates are planned by them."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.pipeline_worlds import measured
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import Measurement


def chained(tick: int, rates: list[float], **changes: object) -> Measurement:
    """A tick of segments at these rates; the first is the rate from outside."""
    one = measured(tick, rate=rates[0])
    first = one.segments[0]
    later = [
        dataclasses.replace(first, name=f"s{number}", arrival_rate=rate, **changes)
        for number, rate in enumerate(rates[1:], 1)
    ]
    return dataclasses.replace(one, segments=(first, *later))


def learned(loads: list[float], ratio: float, lag: int) -> tuple[PipelineModel, Measurement]:
    """A model after a load whose rows reach the second segment some ticks later."""
    model = PipelineModel()
    for tick, load in enumerate(loads):
        before = loads[max(tick - lag, 0)]
        last = chained(tick, [load, ratio * before])
        model.learn(last)
    return model, last


@settings(max_examples=30, deadline=None)
@given(
    fall=st.floats(2.0, 20.0),
    lag=st.integers(1, 3),
    ratio=st.sampled_from([0.2, 1.0, 3.0]),
    since=st.integers(1, 30),
)
def test_a_fall_does_not_raise_the_rate_that_a_later_segment_is_planned_for(
    fall: float, lag: int, ratio: float, since: int
) -> None:
    model, last = learned([3000.0] * 120 + [3000.0 / fall] * since, ratio, lag)
    first, second = model.rates(last, 3000.0)
    assert first == pytest.approx(3000.0)
    assert second == pytest.approx(ratio * 3000.0, rel=0.1)


def test_it_is_not_planned_below_the_rows_that_are_there() -> None:
    model, last = learned([3000.0] * 120 + [300.0], 1.0, 2)
    assert model.rates(last, 300.0) == [pytest.approx(300.0), pytest.approx(3000.0)]


def test_a_loop_that_lags_has_no_more_passes_while_the_load_falls() -> None:
    model = PipelineModel()
    for tick in range(120):
        last = measured(tick, rate=1000.0)
        segment = dataclasses.replace(last.segments[0], arrival_rate=2500.0, loops=True)
        last = dataclasses.replace(last, segments=(segment,))
        model.learn(last)
    fallen = dataclasses.replace(last, arrival_rate=100.0)
    stations = model.stations(fallen, 100.0)
    assert stations is not None
    assert stations[0].visit_ratio == pytest.approx(2.5, rel=0.01)
    assert model.rates(fallen, 1000.0) == [pytest.approx(2500.0, rel=0.01)]


def test_the_share_of_a_source_of_its_own_is_known_at_once() -> None:
    model = PipelineModel()
    for tick in range(120):
        model.learn(chained(tick, [1000.0, 200.0], apart=True))
    leapt = chained(120, [1600.0, 800.0], apart=True)
    assert model.rates(leapt, 3200.0)[1] == pytest.approx(1600.0), "half of the rows, not a fifth"


def test_a_source_that_also_reads_a_channel_is_bounded() -> None:
    model = PipelineModel()
    for tick in range(120):
        model.learn(chained(tick, [1000.0, 700.0], apart=True))
    fallen = chained(120, [100.0, 700.0], apart=True)
    assert model.rates(fallen, 1000.0)[1] <= 1000.0


def test_before_the_first_row_the_rates_follow_from_the_ratios_of_the_earlier_run() -> None:
    model, _ = learned([1000.0] * 60, 3.0, 1)
    after = PipelineModel()
    after.recall(model.learned(), 10.0)
    told = after.at_rate(chained(70, [0.0, 0.0]), 500.0)
    assert told.arrival_rate == 500.0
    assert [one.arrival_rate for one in told.segments] == pytest.approx([500.0, 1500.0], rel=0.01)


def test_a_silent_source_leaves_the_rates_as_they_are() -> None:
    model, _ = learned([1000.0] * 60, 1.0, 1)
    assert model.rates(chained(61, [0.0, 40.0]), 1000.0) == [0.0, 40.0]
