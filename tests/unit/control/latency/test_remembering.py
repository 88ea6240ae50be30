"""What the policy has learned survives as JSON: the next decision is the same."""

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.pipeline_worlds import controller, world
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.controller import Controller
from tidegate.control.latency.load_ahead import LoadForecast
from tidegate.control.latency.scale_in import ScaleIn
from tidegate.control.latency.surges import SurgeHistory
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.sim.microbatch.pipeline import PipelineSimulation, simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import constant, sine

ASSEMBLY = Assembly(target=Target(2.0), bounds=Bounds(1, 16))


def strict(learned: dict[str, Any]) -> dict[str, Any]:
    """Through JSON and back, as other programs read it: without NaN and Infinity."""
    found: dict[str, Any] = json.loads(json.dumps(learned, allow_nan=False))
    return found


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.floats(0.0, 1e5, allow_subnormal=False), min_size=1, max_size=400),
    st.floats(0.0, 1e5, allow_subnormal=False),
    st.sampled_from([1.0, 10.0]),
    st.sampled_from([2, 15, 90]),
)
def test_a_forecast_goes_on_as_if_nothing_had_happened(
    seen: list[float], later: float, tick_s: float, horizon: int
) -> None:
    old, at_s = LoadForecast(tick_s=tick_s), 1_700_000_000.0
    for rate in seen:
        at_s += tick_s
        old.observe(rate, at_s)
        old.within(horizon)
    new = LoadForecast(tick_s=tick_s)
    new.recall(strict(old.learned()), 0.0)
    old.observe(later, at_s + tick_s)
    new.observe(later, at_s + tick_s)
    # ARMA fits again from another start, so it stops at another digit.
    found, expected = new.within(horizon), old.within(horizon)
    assert found.forecaster == expected.forecaster
    assert found.planned == pytest.approx(expected.planned, rel=1e-3)
    assert found.rate == pytest.approx(expected.rate, rel=1e-3)


def pipeline() -> PipelineSimulation:
    segment = SimulatedSegment(fixed_s=0.3, stages=(Stage(name="work", work_s=0.006),))
    return PipelineSimulation(
        World(segments=(segment,), profile=sine(500.0, 350.0, 150.0), seconds=400.0, cores=2)
    )


def run(body: PipelineSimulation, controller: Controller, ticks: range) -> None:
    for tick in ticks:
        record = controller.tick(body.advance(float(tick)))
        if record.acted:
            body.act(record.decision)


@pytest.mark.parametrize("ticks", [5, 70, 133, 200, 290])
def test_the_policy_of_a_new_controller_decides_as_the_old_one_would(ticks: int) -> None:
    """The model is shared here: what it learned is remembered by itself."""
    body, old = pipeline(), new_controller(ASSEMBLY)
    run(body, old, range(1, ticks + 1))
    measurement = body.advance(float(ticks + 1))
    learned = strict(old.learned())
    new = new_controller(ASSEMBLY)
    inside, other = _latency(old), _latency(new)
    inside_model, other._model = inside._model, inside._model
    other._calibration = inside._calibration
    other._planner._model, other._planner._calibration = inside_model, inside._calibration
    other.recall(learned["policy"], 0.0)
    old._learner.learn(measurement)  # type: ignore[union-attr]
    constraints = _constraints()
    first = dataclasses.replace(inside.decide(measurement, constraints))
    # The calibration learns in place, so the second decision sees a tick more of it.
    second = other.decide(measurement, constraints)
    assert (first.cores, first.tasks) == (second.cores, second.tasks)
    for name in ("forecast_rate", "margin", "horizon_s", "needed_cores", "surge"):
        if name in inside.beliefs:
            assert other.beliefs[name] == inside.beliefs[name], name


def _latency(controller: Controller) -> Any:
    policy: Any = controller.policy
    while hasattr(policy, "inner"):
        policy = policy.inner
    return policy


def _constraints() -> Any:
    from tidegate.control.constraints import Constraints

    return Constraints(Bounds(1, 16), None)


def test_a_week_of_history_is_some_hundred_kilobytes() -> None:
    ahead, random = LoadForecast(tick_s=60.0), np.random.default_rng(1)
    for minute in range(9 * 1440):
        ahead._minutes.observe(float(random.uniform(900.0, 1100.0)), 1.7e9 + 60.0 * minute)
    ahead.observe(1000.0, 1.7e9 + 9 * 86_400.0)
    size = len(json.dumps(strict(ahead.learned())))
    assert 50_000 < size < 400_000


def test_a_gap_is_a_gap_and_no_load_of_zero() -> None:
    old, at_s = LoadForecast(), 1_700_000_000.0
    for second in range(1200):
        old.observe(300.0, at_s + second)
        old.within(90)
    new = LoadForecast()
    new.recall(strict(old.learned()), 3600.0)
    planned = []
    for second in range(240):
        new.observe(300.0, at_s + 4800.0 + second)
        planned.append(new.within(90).planned)
    assert min(planned) >= 300.0 * 0.99 and max(planned) <= 300.0 * 1.3
    rates = [one.rate for one in new._minutes.known]
    assert None in rates and 0.0 not in rates


def test_surges_fade_with_the_age_of_what_was_learned() -> None:
    old = SurgeHistory()
    for second in range(600):
        old.observe(300.0 if second % 100 == 50 else 100.0, float(second), 2.0)
        old.plan_for(100.0, float(second))
    fresh, stale = SurgeHistory(), SurgeHistory()
    fresh.recall(strict(old.learned()), 0.0)
    stale.recall(strict(old.learned()), 30 * 86_400.0)
    assert fresh.rate(1.5) == old.rate(1.5)
    assert stale.rate(1.5) == pytest.approx(SurgeHistory().rate(1.5), rel=1e-3)


def test_a_wait_does_not_go_on_across_a_gap() -> None:
    old = ScaleIn(10.0, 0.15)
    old._needs.append((0.0, 1))
    old._rates.append(5.0)
    old._patience = 4.0
    near, far = ScaleIn(10.0, 0.15), ScaleIn(10.0, 0.15)
    near.recall(strict(old.learned()), 1.0)
    far.recall(strict(old.learned()), 60.0)
    assert list(near._needs) == [(0.0, 1)] and not far._needs
    assert near._patience == far._patience == 4.0


def test_what_is_missing_is_learned_again() -> None:
    policy = _latency(new_controller(ASSEMBLY))
    policy.recall({}, 10.0)
    policy.recall({"forecast": {}, "surges": {"watched_s": 5.0}}, 0.0)
    assert policy.learned()["forecast"] == {}


def test_the_first_decision_after_a_restart_is_as_good_as_the_last_before_it() -> None:
    """Before its first batch a pipeline measures no rate. The controller goes through JSON."""
    before = controller()
    last = simulate(world(constant(3000.0), seconds=60.0), before).records[-1]
    after = controller()
    after.recall(json.loads(json.dumps(before.learned())), last.measurement.at_s + 12.0)
    nothing = nothing_yet(13.0, last)
    first = after.tick(nothing)
    assert first.decision.cores == last.beliefs["needed_cores"]
    assert first.beliefs["forecast_rate"] == pytest.approx(3000.0, rel=0.05)
    assert "begins with what a run learned that ended 12 s ago" in first.decision.notes
    fresh = controller().tick(nothing)
    assert fresh.decision.cores is None, "without memory nothing is known"


def planned(keeping: bool, ticks: int = 1500) -> list[float]:
    """What is planned for, at a horizon of 90 s, while what was learned is kept every 10 s."""
    ahead, found = LoadForecast(), []
    for tick in range(ticks):
        at_s = 1_700_000_000.0 + tick
        ahead.observe(500.0 + 300.0 * math.sin(2 * math.pi * tick / 900.0), at_s)
        found.append(ahead.within(90).planned)
        if keeping and tick % 10 == 2:  # in the ticks that learn a minute, too
            strict(ahead.learned())
    return found


def test_keeping_what_was_learned_changes_no_plan() -> None:
    assert planned(keeping=True) == planned(keeping=False)


def nothing_yet(seconds_later: float, last: Record, *, tick_s: float = 1.0) -> Measurement:
    """A tick of a restarted pipeline before its first batch, on one core."""
    measured = last.measurement
    return dataclasses.replace(
        measured,
        at_s=measured.at_s + seconds_later,
        interval_s=tick_s,
        arrival_rate=0.0,
        processed_rate=0.0,
        backlog_rows=0.0,
        latency=None,
        cores_asked=1,
        cores_granted=1,
        segments=tuple(
            dataclasses.replace(one, arrival_rate=0.0, backlog_rows=0.0, batches=(), tasks=1)
            for one in measured.segments
        ),
        operators=tuple(
            dataclasses.replace(
                one, arrival_rate=0.0, rows=0, busy_s=0.0, tasks=1, route=(), shard_rows=()
            )
            for one in measured.operators
        ),
    )


def after_a_run(age_s: float) -> tuple[Controller, Record]:
    before = controller()
    last = simulate(world(constant(3000.0), seconds=90.0), before).records[-1]
    after = controller()
    assert after.recall(strict(before.learned()), last.measurement.at_s + age_s) is None
    return after, last


def test_a_load_that_was_measured_long_ago_is_not_planned_for() -> None:
    for age_s in (3600.0, 90 * 86_400.0):
        after, last = after_a_run(age_s)
        for second in range(1, 200, 10):
            record = after.tick(nothing_yet(age_s + second, last))
            assert record.decision.cores is None and record.beliefs["forecast_rate"] == 0.0


def test_the_first_row_is_awaited_for_two_minutes_only() -> None:
    after, last = after_a_run(12.0)
    wanted = [after.tick(nothing_yet(12.0 + s, last)).decision.cores for s in range(1, 300, 3)]
    for cores in (wanted[0], wanted[39]):
        assert cores == pytest.approx(last.beliefs["needed_cores"], abs=1)
    assert set(wanted[41:]) == {None}


def test_after_a_night_the_usual_load_of_this_time_is_planned_for() -> None:
    old, morning_s = LoadForecast(tick_s=60.0), 1_699_833_600.0 + 9 * 3600.0
    for minute in range(1440 + 600):
        at_s = morning_s + 60.0 * minute
        old.observe(900.0 if minute % 1440 < 600 else 200.0, at_s)
        old.within(2)
    new = LoadForecast(tick_s=60.0)
    new.recall(strict(old.learned()), 14 * 3600.0)
    found = new.before_rows(2, morning_s + 2 * 86_400.0 + 600.0)
    assert found.planned == pytest.approx(900.0) and found.forecaster == "same time of day"


def test_a_first_row_after_months_does_not_bring_back_the_old_load() -> None:
    old = LoadForecast()
    for second in range(300):
        old.observe(3000.0 if second % 3 else 1000.0, 1_700_000_000.0 + second)
        old.within(2)
    assert old._forecaster.selected == "recent maximum"
    new = LoadForecast()
    new.recall(strict(old.learned()), 90 * 86_400.0)
    new.observe(100.0, 1_700_000_000.0 + 90 * 86_400.0)
    assert new.within(2).planned < 200.0


def test_another_tick_keeps_the_minutes_and_drops_what_was_learned_by_tick() -> None:
    """Learned by ticks of 1 s, restarted with ticks of 10 s: the horizon stays 90 s and a batch."""
    before = controller()
    last = simulate(world(constant(3000.0), seconds=200.0), before).records[-1]
    after = controller()
    after.recall(strict(before.learned()), last.measurement.at_s + 10.0)
    policy = _latency(after)
    minutes = policy._forecast._minutes.known
    asked: list[float] = []
    for tick in range(1, 8):
        now = dataclasses.replace(
            last.measurement,
            at_s=last.measurement.at_s + 10.0 * tick,
            interval_s=10.0,
            grant_s=90.0,
        )
        record = after.tick(now)
        choose = policy._forecast._selection.choose

        def spied(points: Any, horizon_s: float, at_s: float, choose: Any = choose) -> Any:
            asked.append(horizon_s)
            return choose(points, horizon_s, at_s)

        policy._forecast._selection.choose = spied
    assert record.beliefs["horizon_s"] > 90.0
    assert asked and min(asked) >= 90.0
    assert policy._forecast.tick_s == 10.0
    assert policy._forecast._minutes.known[: len(minutes)] == minutes


def test_a_jittering_tick_is_the_same_tick() -> None:
    after, last = after_a_run(5.0)
    forecast = _latency(after)._forecast
    after.tick(dataclasses.replace(nothing_yet(5.0, last), interval_s=1.2))
    assert _latency(after)._forecast is forecast
