"""What micro-batches show: the model's throughput within the target, whatever their size."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.pipeline_worlds import measured
from tidegate.control.batch_parts import SLOWEST
from tidegate.control.capacity.batch_samples import BatchSamples
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import BatchMeasurement, Measurement
from tidegate.models.microbatch.batch_cost import BatchCost

COST = BatchCost(fixed_s=0.2, work_s=1e-3)
TARGET_S = 1.5


def batch(tick: int, rows: int, cores: int) -> Measurement:
    """A tick with one batch that took exactly what it costs."""
    return measured(tick, rows=rows, cores=cores, duration_s=COST.duration_s(rows, cores))


def learned() -> PipelineModel:
    model = PipelineModel()
    for tick in range(40):
        cores = 16 >> (tick // 8)
        model.learn(batch(tick, cores * (300 + 150 * (tick % 5)), cores))
    return model


@given(each=st.integers(300, 3000), cores=st.integers(1, 16))
def test_a_batch_shows_what_its_cores_can_do_within_the_target(each: int, cores: int) -> None:
    seen = batch(50, each * cores, cores)
    (shown,) = BatchSamples(TARGET_S, learned()).shown(seen)
    assert shown.cores == cores
    assert shown.rows_per_s == pytest.approx(COST.throughput(cores, TARGET_S), rel=0.1)
    assert shown.saturated == (seen.segments[0].batches[0].duration_s >= 1.0)


def test_before_anything_is_learned_only_a_saturated_batch_counts() -> None:
    model = PipelineModel()
    model.learn(measured(0, batches=False))
    samples = BatchSamples(TARGET_S, model)
    assert samples.shown(batch(0, 300, 2)) == ()
    (shown,) = samples.shown(batch(0, 3000, 2))
    assert shown.rows_per_s == pytest.approx(3000 / COST.duration_s(3000, 2))


def test_a_batch_that_is_no_guide_shows_nothing() -> None:
    seen = batch(50, 3000, 2)
    (segment,) = seen.segments

    def with_batch(one: BatchMeasurement) -> Measurement:
        return dataclasses.replace(seen, segments=(dataclasses.replace(segment, batches=(one,)),))

    samples = BatchSamples(TARGET_S, learned())
    odd = dataclasses.replace(segment.batches[0], outlier="first")
    empty = dataclasses.replace(segment.batches[0], rows=0)
    assert samples.shown(with_batch(odd)) == samples.shown(with_batch(empty)) == ()
    assert samples.shown(measured(50, batches=False)) == ()


def test_the_slowest_segment_limits_the_pipeline() -> None:
    """Its rows are counted from outside, and its cores are those of all segments."""
    seen = batch(50, 3000, 2)
    (first,) = seen.segments
    slow = dataclasses.replace(first.batches[0], rows=1000, tasks=3)
    second = dataclasses.replace(first, name="second", tasks=3, batches=(slow,))
    both = dataclasses.replace(seen, segments=(first, second))
    model = PipelineModel()
    quiet = [dataclasses.replace(one, batches=()) for one in both.segments]
    model.learn(dataclasses.replace(both, segments=tuple(quiet)))
    (shown,) = BatchSamples(TARGET_S, model).shown(both)
    assert shown.cores == 5
    assert shown.rows_per_s == pytest.approx(1000 / slow.duration_s)
    assert shown.saturated


def in_a_row(tick: int, *, outside: float, later: float) -> Measurement:
    """Two segments, the later one with batches that took exactly what they cost on two cores."""
    seen = measured(tick, rate=outside, batches=False)
    (first,) = seen.segments
    rows = round(later * 0.4)
    done = BatchMeasurement(
        batch_id=tick,
        rows=rows,
        tasks=2,
        imbalance=1.0,
        duration_s=COST.duration_s(rows, 2),
        ended_s=seen.at_s,
    )
    second = dataclasses.replace(first, name="second", arrival_rate=later, batches=(done,))
    return dataclasses.replace(seen, segments=(first, second))


@pytest.mark.parametrize("outside", [10.0, 0.0])
def test_a_segment_that_drains_an_earlier_load_shows_what_it_did_before(outside: float) -> None:
    """The source has fallen to a hundredth or to nothing, and the later segment has not yet."""
    model = PipelineModel()
    for number in range(120):
        model.learn(in_a_row(number, outside=1000.0, later=1000.0 + 50.0 * (number % 5)))
    samples = BatchSamples(TARGET_S, model)
    (steady,) = samples.shown(in_a_row(120, outside=1000.0, later=1000.0))
    draining = in_a_row(121, outside=outside, later=1000.0)
    model.learn(draining)
    (shown,) = samples.shown(draining)
    assert shown.rows_per_s == pytest.approx(steady.rows_per_s, rel=0.05)


def test_a_segment_without_a_known_visit_ratio_shows_nothing() -> None:
    """A first batch that ends before any arrival was counted cannot be told in rows outside."""
    assert BatchSamples(TARGET_S, PipelineModel()).shown(batch(0, 3000, 2)) == ()


BESIDE = dataclasses.replace(COST, least_s=0.6)
"""A pipeline whose batches take 0.8 s at least, because other work runs beside their tasks."""


def beside(tick: int, rows: int, cores: int) -> Measurement:
    """A tick with one such batch, which tells the time of its slowest tasks."""
    seen = measured(
        tick, rows=rows, cores=cores, duration_s=BESIDE.duration_s(rows, cores), batches=True
    )
    (segment,) = seen.segments
    told = {SLOWEST: rows * BESIDE.row_s(cores)}
    one = dataclasses.replace(segment.batches[0], parts_s=told)
    return dataclasses.replace(seen, segments=(dataclasses.replace(segment, batches=(one,)),))


@pytest.mark.parametrize("each", [50, 200, 500, 1200, 2400])
def test_a_batch_that_other_work_made_last_shows_nothing_of_its_rows(each: int) -> None:
    """Small batches take as long as those of 600 rows per core, and would show a tenth of it."""
    model = PipelineModel()
    for number in range(60):
        model.learn(beside(number, (100 + 300 * (number % 8)) * 2, 2))
    cost = model.segment("main").cost
    assert cost is not None and cost.least_s == pytest.approx(0.6, rel=0.15)
    shown = BatchSamples(TARGET_S, model).shown(beside(70, each * 2, 2))
    if each <= 600:
        assert shown == ()
    else:
        assert shown[0].rows_per_s == pytest.approx(BESIDE.throughput(2, TARGET_S), rel=0.1)


def test_with_a_trigger_a_batch_is_saturated_from_t_less_half_of_it_on() -> None:
    """P = 2 s and T = 1.5 s: rows wait 1 s for their batch, so one of 0.5 s is on target."""
    model = PipelineModel()
    model.learn(measured(0, batches=False))

    def triggered(rows: int) -> Measurement:
        seen = batch(50, rows, 2)
        (segment,) = seen.segments
        return dataclasses.replace(seen, segments=(dataclasses.replace(segment, trigger_s=2.0),))

    samples = BatchSamples(TARGET_S, model)
    assert samples.shown(triggered(500)) == ()  # 0.45 s
    (shown,) = samples.shown(triggered(600))
    assert shown.saturated
    assert shown.rows_per_s == pytest.approx(600 / 2.0), "so many rows in every interval"
