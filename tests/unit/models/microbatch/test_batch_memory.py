"""What is remembered of batches, where they are too alike to tell, and the way out of a backlog."""

import math

import numpy as np
import pytest

from tidegate.control.latency.catch_up import cores_to_catch_up
from tidegate.control.latency.load_ahead import MOST_MARGIN, MOST_MOMENTUM, LoadForecast
from tidegate.forecast.trend import DampedTrend
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.microbatch.batch_memory import BatchMemory, ToldParts
from tidegate.models.microbatch.imbalance import chance_spread

COST = BatchCost(fixed_s=0.3, per_task_s=0.01, work_s=1e-3)


def show(memory: BatchMemory, rows: float, tasks: int, at_s: float, noise: float = 0.0) -> None:
    duration_s = COST.duration_s(rows, tasks) * (1.0 + noise)
    memory.observe(rows=rows, tasks=tasks, duration_s=duration_s, imbalance=1.0, at_s=at_s)


def test_several_kinds_of_batches_give_the_cost() -> None:
    memory = BatchMemory()
    for at_s, (rows, tasks) in enumerate([(500, 2), (1500, 2), (1500, 4), (6000, 8), (500, 8)] * 4):
        show(memory, rows, tasks, float(at_s))
    cost = memory.fit(20.0, None)
    assert cost is not None and memory.kinds == 5
    assert cost.work_s == pytest.approx(COST.work_s, rel=0.05)
    assert cost.overhead_s(4) == pytest.approx(COST.overhead_s(4), rel=0.05)


def test_a_steady_hour_does_not_wash_out_what_a_surge_taught() -> None:
    memory = BatchMemory()
    for at_s, (rows, tasks) in enumerate([(500, 2), (1500, 2), (4000, 4), (6000, 8)]):
        show(memory, rows, tasks, float(at_s))
    rng = np.random.default_rng(3)
    for at_s in range(10, 900):
        show(memory, 700 * rng.normal(1.0, 0.02), 2, float(at_s), rng.normal(0.0, 0.05))
    cost = memory.fit(900.0, None)
    assert cost is not None
    assert cost.duration_s(6000, 8) == pytest.approx(COST.duration_s(6000, 8), rel=0.15)


def test_batches_that_are_alike_leave_the_word_to_busy_time() -> None:
    memory = BatchMemory()
    rng = np.random.default_rng(5)
    for at_s in range(40):
        show(memory, 700 * rng.normal(1.0, 0.02), 2, float(at_s), rng.normal(0.0, 0.05))
    told = memory.fit(40.0, 0.95e-3)
    untold = memory.fit(40.0, None)
    assert told is not None and untold is not None
    assert told.work_s == pytest.approx(1e-3, rel=0.3)
    assert untold.work_s > told.work_s, "all work, until something else is known"
    assert told.duration_s(700, 2) == pytest.approx(COST.duration_s(700, 2), rel=0.05)
    assert BatchMemory().fit(0.0, None) is None


def test_catching_up_takes_as_long_as_said() -> None:
    even = np.ones(64)
    for within_s in (3.0, 5.0, 20.0):
        cores = cores_to_catch_up(
            COST,
            rate=2000.0,
            imbalance=even,
            backlog_rows=12_000.0,
            steady_s=1.0,
            within_s=within_s,
        )
        assert _seconds_to(COST, cores, 2000.0, 12_000.0, 1.0) <= within_s
        assert _seconds_to(COST, cores - 1, 2000.0, 12_000.0, 1.0) > within_s
    hopeless = cores_to_catch_up(
        COST, rate=9e9, imbalance=even, backlog_rows=1e9, steady_s=1.0, within_s=5.0
    )
    assert hopeless == 64


def _seconds_to(cost: BatchCost, cores: int, rate: float, backlog: float, steady_s: float) -> float:
    """One batch after the other, until the next one is short enough."""
    spent_s = 0.0
    duration_s = cost.duration_s(backlog, cores)
    for _ in range(1000):
        spent_s += duration_s
        duration_s = cost.duration_s(rate * duration_s, cores)
        if duration_s <= steady_s:
            return spent_s
    return float("inf")


def test_a_ramp_goes_on_and_ends() -> None:
    trend = DampedTrend()
    for step in range(40):
        trend.observe(100.0 + 10.0 * step, float(step))
    forecast = trend.forecast(60)
    assert 490.0 < forecast.mean[0] < 510.0
    assert forecast.mean[4] > forecast.mean[0]
    assert forecast.mean[-1] - forecast.mean[-2] < 0.1, "damped"
    assert np.all(np.diff(forecast.variance) > 0)


def test_the_margin_covers_noise_and_a_leap_is_taken_to_go_on_for_a_tick() -> None:
    coming = LoadForecast(coverage=0.9)
    rng = np.random.default_rng(8)
    planned = 0.0
    covered = []
    for step in range(400):
        rate = 1000.0 * rng.normal(1.0, 0.08)
        if step > 100:
            covered.append(rate <= planned)
        coming.observe(rate, float(step))
        planned = coming.within(2).planned
    assert 0.85 <= np.mean(covered) <= 1.0
    assert planned < 1400.0
    coming.observe(5000.0, 400.0)
    assert coming.within(2).planned == pytest.approx(5000.0 * MOST_MOMENTUM)
    coming.observe(5000.0, 401.0)
    assert 5000.0 <= coming.within(2).planned <= 5000.0 * math.exp(MOST_MARGIN)


def test_nothing_is_learned_of_the_silence_before_the_first_row() -> None:
    """A load that begins has leapt from nothing; no later forecast may be wide because of that."""
    silent, plain = LoadForecast(), LoadForecast()
    assert silent.within(2).planned == 0.0
    for tick in range(5):
        silent.observe(0.0, float(tick))
    for tick in range(5, 60):
        silent.observe(200.0, float(tick))
        plain.observe(200.0, float(tick))
        assert silent.within(2) == plain.within(2)


def test_two_rises_in_a_row_are_a_ramp() -> None:
    coming = LoadForecast()
    for tick in range(30):
        coming.observe(500.0, float(tick))
        coming.within(1)
    coming.observe(543.0, 30.0)
    once = coming.within(1).planned
    coming.observe(590.0, 31.0)
    assert once < 1.08 * 543.0
    assert coming.within(1).planned >= 1.13 * 590.0


def test_on_a_calm_stream_a_small_jump_is_growth_and_on_a_restless_one_it_is_noise() -> None:
    calm, restless = LoadForecast(), LoadForecast()
    for tick in range(60):
        calm.observe(500.0, float(tick))
        restless.observe(500.0 * (1.06 if tick % 2 else 0.94), float(tick))
        calm.within(1), restless.within(1)
    calm.observe(570.0, 60.0)
    restless.observe(0.94 * 570.0, 60.0)
    assert calm.within(1).planned >= 1.2 * 570.0, "it is expected to go on"
    assert restless.within(1).planned < 1.15 * 570.0


def tell(memory: BatchMemory, rows: float, tasks: int, at_s: float, *, slow: float = 0.0) -> float:
    """Observe a batch that tells its parts; `slow` is what the machine adds to its fixed cost."""
    busy_s = 0.02 + rows * COST.work_s / tasks
    starting_s = COST.per_task_s * tasks
    duration_s = COST.fixed_s + slow + starting_s + busy_s
    memory.observe(
        rows=rows,
        tasks=tasks,
        duration_s=duration_s,
        imbalance=1.0,
        at_s=at_s,
        told=ToldParts(busy_s, 0.02, starting_s),
    )
    return duration_s


def test_one_batch_that_tells_its_parts_predicts_other_tasks_and_rows() -> None:
    memory = BatchMemory()
    tell(memory, 1000, 4, 0.0)
    cost = memory.fit(1.0, None)
    assert cost is not None
    for rows, tasks in ((1000, 12), (4000, 2), (100, 8)):
        expected_s = COST.duration_s(rows, tasks) + 0.02
        # A twentieth of the tasks' time is taken to be saved elsewhere, until batches tell.
        assert cost.duration_s(rows, tasks) == pytest.approx(expected_s, rel=0.05)


def test_a_slow_minute_of_the_machine_does_not_look_like_costly_rows() -> None:
    """A batch that follows a slow one has more rows because of that, and is slow itself."""
    told, alone = BatchMemory(), BatchMemory()
    rate, tasks, before_s = 2000.0, 4, 0.7
    for number in range(60):
        slow = 0.15 * math.sin(number / 6.0)
        rows = rate * before_s
        before_s = tell(told, rows, tasks, float(number), slow=slow)
        alone.observe(
            rows=rows, tasks=tasks, duration_s=before_s, imbalance=1.0, at_s=float(number)
        )
    apart, together = told.fit(60.0, None), alone.fit(60.0, None)
    assert apart is not None and together is not None
    assert apart.work_s == pytest.approx(COST.work_s, rel=0.03)
    assert abs(together.work_s / COST.work_s - 1.0) > 0.1


def test_batches_that_tell_nothing_are_fitted_as_a_whole() -> None:
    memory = BatchMemory()
    for at_s, (rows, tasks) in enumerate([(500, 2), (1500, 2), (1500, 4), (6000, 8), (500, 8)] * 4):
        tell(memory, rows, tasks, float(at_s))
    show(memory, 700, 3, 30.0)
    cost = memory.fit(31.0, None)
    assert cost is not None
    assert cost.duration_s(2000, 4) == pytest.approx(COST.duration_s(2000, 4), rel=0.1)


def test_tasks_that_are_shorter_than_the_work_beside_them_save_nothing() -> None:
    """Batches whose tasks take less than 0.5 s take as long as if they took that."""
    memory = BatchMemory()
    for at_s, (rows, tasks) in enumerate([(500, 4), (1000, 4), (4000, 4), (8000, 4)] * 10):
        busy_s = rows * COST.work_s / tasks
        memory.observe(
            rows=rows,
            tasks=tasks,
            duration_s=0.3 + max(busy_s, 0.5),
            imbalance=1.0,
            at_s=float(at_s),
            told=ToldParts(busy_s, 0.0, 0.0),
        )
    cost = memory.fit(40.0, None)
    assert cost is not None
    assert cost.work_s == pytest.approx(COST.work_s, rel=0.06)
    for rows in (100, 1500, 12_000):
        expected_s = 0.3 + max(rows * COST.work_s / 4, 0.5)
        assert cost.duration_s(rows, 4) == pytest.approx(expected_s, rel=0.07)


def test_chance_is_told_from_what_lasts() -> None:
    """Rows that fall on tasks at random, on a route whose fullest task has a fifth more."""
    random = np.random.default_rng(5)
    memory = BatchMemory()
    for at_s, (rows, tasks) in enumerate([(60, 6), (200, 6), (1500, 6), (9000, 6)] * 60):
        parts = np.full(tasks, 1.0)
        parts[0] = 1.2 * (tasks - 1) / (tasks - 1.2)
        drawn = random.multinomial(rows, parts / parts.sum())
        delta = float(drawn.max() * tasks / rows)
        memory.observe(rows=rows, tasks=tasks, duration_s=1.0, imbalance=delta, at_s=at_s / 60.0)
    chance = memory.chance(4.0)
    for rows in (60, 1500):
        parts = np.full(6, 1.0)
        parts[0] = 1.2 * 5 / 4.8
        drawn = random.multinomial(rows, parts / parts.sum(), 4000).max(axis=1)
        beyond = float(drawn.mean() * 6 / rows) - 1.2
        expected = chance * float(chance_spread(6)) / math.sqrt(rows)
        assert expected == pytest.approx(beyond, abs=0.08)
    assert BatchMemory().chance(0.0) == 0.0
