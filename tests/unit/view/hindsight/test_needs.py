"""The cores that were enough, by costs that are learned from the records themselves."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.known_cost import TARGET_S, enough_for, known_run
from tests.helpers.pipeline_worlds import measured
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.latency.fewest_cores import predicted_s
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import Measurement, SegmentMeasurement
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.view.hindsight.enough import Enough, Search, along_path
from tidegate.view.hindsight.needs import Needs, Question
from tidegate.view.hindsight.rates import rates_that_came
from tidegate.view.hindsight.settings import settings_of


def needs_of(run: list[Record]) -> list:
    return Needs(run, settings_of(run)).find()


@pytest.mark.parametrize("rate", [300.0, 1000.0, 3000.0, 7000.0])
def test_enough_is_what_the_formula_says(rate: float) -> None:
    """The run has twice the cores, and other loads before, so that the cost can be learned."""
    rates = [rate / 2] * 20 + [rate * 1.3] * 20 + [rate] * 40
    found = needs_of(known_run(rates, [2 * enough_for(1.3 * rate)] * 80))
    assert {need.enough for need in found[45:75]} == {enough_for(rate)}
    assert all(need.reachable and need.wanted == need.enough for need in found)


def test_the_cost_is_the_one_that_is_known_later() -> None:
    """Batches take twice as long from tick 40 on. At tick 41 nobody knows; afterwards it counts."""
    run = known_run([1500.0] * 160, [6] * 160, slower=2.0, slower_from=40)
    found = needs_of(run)
    before, just, after = found[5], found[41], found[150]
    assert just.believed < after.enough
    assert just.enough == after.enough > before.believed


def test_more_than_the_maximum_is_told_apart_from_enough() -> None:
    found = needs_of(known_run([5000.0] * 30, [9] * 30, bounds=Bounds(1, 4)))
    assert found[-1].enough == 4 and found[-1].wanted >= enough_for(5000.0)


def test_a_target_below_the_floor_is_out_of_reach() -> None:
    found = needs_of(known_run([1000.0] * 40, [4] * 40, target_s=0.2))
    assert not found[-1].reachable and found[-1].enough >= 2


def test_cores_come_in_whole_executors() -> None:
    run = known_run([1000.0] * 30, [8] * 30)
    made = dataclasses.replace(Assembly.of(run[0].assembly or {}), cores_per_executor=4)
    run[0] = dataclasses.replace(run[0], assembly=made.document())
    assert {need.enough for need in needs_of(run)} == {4}


def test_a_changed_target_counts_from_its_tick_on() -> None:
    run = known_run([1000.0] * 60, [4] * 60)
    made = Assembly.of(run[0].assembly or {})
    shorter = dataclasses.replace(made, target=Target(0.5))
    run[30] = dataclasses.replace(run[30], assembly=shorter.document())
    run[30:] = [dataclasses.replace(one, target_s=0.5) for one in run[30:]]
    found = needs_of(run)
    assert found[20].enough == enough_for(1000.0) == 2
    assert found[50].enough == enough_for(1000.0, 0.5) == 3


def test_nothing_is_known_without_a_target_or_before_any_batch() -> None:
    assert needs_of(known_run([1000.0] * 5, [4] * 5, target_s=None)) == [None] * 5
    run = known_run([1000.0] * 5, [4] * 5)
    empty = [
        dataclasses.replace(one, measurement=measured(n, batches=False))
        for n, one in enumerate(run)
    ]
    assert needs_of(empty) == [None] * 5


def test_a_question_is_answered_by_the_model_of_its_tick() -> None:
    run = known_run([1000.0] * 30 + [2000.0] * 30, [4] * 60)
    needs = Needs(run, settings_of(run), {40: Question(1000.0, {"main": 2})})
    needs.find()
    assert needs.predicted_s[40] == pytest.approx(1.5 * 0.2 / (1 - 0.5), rel=0.1)
    strange = Needs(run, settings_of(run), {40: Question(1000.0, {"other": 2})})
    strange.find()
    assert strange.predicted_s == {}


def test_a_run_begins_with_what_was_learned_before_it() -> None:
    run = known_run([1000.0] * 40 + [2000.0] * 40, [4] * 80)
    model = PipelineModel()
    for one in run:
        model.learn(one.measurement)
    at_s = run[-1].measurement.at_s
    learned = {"at_s": at_s, "model": model.learned()}
    second = known_run([1000.0] * 3, [4] * 3, first_tick=100)
    idle = [
        dataclasses.replace(one, measurement=measured(100 + n, batches=False))
        for n, one in enumerate(second)
    ]
    recalled = {"now_s": at_s + 5.0, "learned": learned}
    idle[0] = dataclasses.replace(idle[0], recalled=recalled)
    assert needs_of(idle)[-1].enough == enough_for(1000.0)


def test_a_spike_shorter_than_a_batch_is_spread_over_it() -> None:
    ticks = [measured(n, rate=5000.0 if n == 5 else 1000.0) for n in range(11)]
    assert rates_that_came(ticks, [0.0] * 11)[5] == pytest.approx(5000.0)
    assert rates_that_came(ticks, [4.0] * 11)[5] == pytest.approx(2000.0)
    assert rates_that_came(ticks, [4.0] * 11)[0] == pytest.approx(1000.0)


def learned_from(fixed_s: float, work_s: float, rates: list[float]) -> PipelineModel:
    """A model that has seen batches of this cost, on different numbers of cores."""
    model = PipelineModel()
    for number in range(24):
        rate, cores = rates[number % len(rates)], 4 + 4 * (number % 3)
        rows = round(rate)
        duration_s = fixed_s + rows * work_s / cores
        model.learn(measured(number + 1, rate=rate, cores=cores, duration_s=duration_s, rows=rows))
    return model


def brute_force(
    model: PipelineModel, tick: Measurement, rate: float, goal_s: float, share: float | None
) -> int | None:
    """The smallest number of cores whose predicted latency is within the goal, one by one."""
    for cores in range(1, 200):
        stations = model.stations(tick, rate, {"main": cores})
        assert stations is not None
        if predicted_s(stations, [cores], share) <= goal_s:
            return cores
    return None


@settings(max_examples=60, deadline=None)
@given(
    fixed_s=st.floats(0.02, 0.8),
    work_s=st.floats(1e-5, 5e-3),
    rate=st.floats(10.0, 20_000.0),
    goal_s=st.floats(0.3, 10.0),
    share=st.sampled_from([None, 0.95]),
    guess=st.integers(1, 60),
)
def test_no_fewer_cores_would_do_and_no_more_are_said_to_be_needed(
    fixed_s: float, work_s: float, rate: float, goal_s: float, share: float | None, guess: int
) -> None:
    model = learned_from(fixed_s, work_s, [rate * 0.5, rate, rate * 1.5])
    tick = measured(30, rate=rate)
    least = brute_force(model, tick, rate, goal_s, share)
    search = Search()
    search._last = guess
    found = search.fewest(model, tick, rate, goal_s, share)
    assert found is not None
    if least is None:
        assert not found.reachable or found.cores >= 200
    else:
        assert found.reachable and found.cores <= least
        stations = model.stations(tick, rate, {"main": found.cores})
        assert stations is not None and predicted_s(stations, [found.cores], share) <= goal_s


def two_segments(rate: float) -> Measurement:
    """A tick of two queries beside each other, of which the second has half the rows."""
    tick = measured(30, rate=rate)
    (main,) = tick.segments
    batch = dataclasses.replace(main.batches[0], rows=main.batches[0].rows // 2, duration_s=0.4)
    other = SegmentMeasurement(
        name="other",
        arrival_rate=rate / 2,
        backlog_rows=0.0,
        tasks=main.tasks,
        batches=(batch,),
        apart=True,
    )
    return dataclasses.replace(tick, arrival_rate=1.5 * rate, segments=(main, other), operators=())


@settings(max_examples=25, deadline=None)
@given(rate=st.floats(100.0, 8000.0), goal_s=st.floats(1.0, 6.0))
def test_the_cores_of_several_queries_are_as_few_as_any_division_needs(
    rate: float, goal_s: float
) -> None:
    model = PipelineModel()
    for number in range(20):
        tick = two_segments(rate * (0.6 + 0.2 * (number % 4)))
        model.learn(dataclasses.replace(tick, at_s=tick.at_s + number))
    tick = two_segments(rate)
    found = along_path(model, tick, 1.5 * rate, goal_s, None)
    if not found.reachable:
        return
    for total in range(2, found.cores):
        for main in range(1, total):
            cores = {"main": main, "other": total - main}
            stations = model.stations(tick, 1.5 * rate, cores)
            assert stations is not None
            assert predicted_s(stations, list(cores.values()), None) > goal_s * 0.999


def test_an_unknown_cost_finds_nothing() -> None:
    assert Search().fewest(PipelineModel(), measured(1), 100.0, TARGET_S, None) is None
    assert Enough(3).reachable
