"""What the policy has learned survives as JSON: the next decision is the same."""

import dataclasses
import json
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
    assert new.within(horizon) == old.within(horizon)


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
    old._patience = 4.0
    near, far = ScaleIn(10.0, 0.15), ScaleIn(10.0, 0.15)
    near.recall(strict(old.learned()), 1.0)
    far.recall(strict(old.learned()), 60.0)
    assert list(near._needs) == [[0.0, 1]] and not far._needs
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
    measured = last.measurement
    nothing = dataclasses.replace(
        measured,
        at_s=measured.at_s + 13.0,
        arrival_rate=0.0,
        processed_rate=0.0,
        backlog_rows=0.0,
        latency=None,
        cores_asked=1,
        cores_granted=1,
        segments=(
            dataclasses.replace(
                measured.segments[0], arrival_rate=0.0, backlog_rows=0.0, batches=(), tasks=1
            ),
        ),
        operators=tuple(
            dataclasses.replace(
                one, arrival_rate=0.0, rows=0, busy_s=0.0, tasks=1, route=(), shard_rows=()
            )
            for one in measured.operators
        ),
    )
    first = after.tick(nothing)
    assert first.decision.cores == last.beliefs["needed_cores"]
    assert first.beliefs["forecast_rate"] == pytest.approx(3000.0, rel=0.05)
    assert "begins with what a run learned that ended 12 s ago" in first.decision.notes
    fresh = controller().tick(nothing)
    assert fresh.decision.cores is None, "without memory nothing is known"
