"""The learner of a batch's cost: right, sure when it may be, silent when it cannot know."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.microbatch.batch_learner import BatchLearner, NotLearnedYet

TRUTH = BatchCost(fixed_s=0.25, per_task_s=0.01, work_s=0.002)


def teach(
    learner: BatchLearner,
    cost: BatchCost,
    batches: int,
    seed: int = 1,
    noise_s: float = 0.02,
    tasks: tuple[int, ...] = (2, 4, 8, 12),
) -> None:
    random = np.random.default_rng(seed)
    for _ in range(batches):
        rows = float(random.integers(100, 5000))
        k = int(random.choice(tasks))
        delta = float(random.uniform(1.0, 1.5))
        duration_s = cost.duration_s(rows, k, delta) + random.normal(0.0, noise_s)
        learner.observe(rows=rows, tasks=k, duration_s=max(0.0, duration_s), imbalance=delta)


def test_it_finds_the_cost_and_its_uncertainty_covers_the_error() -> None:
    learner = BatchLearner()
    teach(learner, TRUTH, 400)
    fit = learner.fit()
    truth = np.array([0.25, 0.01, 0.002])
    found = np.array([fit.cost.fixed_s, fit.cost.per_task_s, fit.cost.work_s])
    assert found == pytest.approx(truth, rel=0.1)
    assert np.all(np.abs(found - truth) < 4.0 * np.sqrt(np.diag(fit.covariance)))
    assert fit.residual_s == pytest.approx(0.02, rel=0.2)
    assert fit.batches == pytest.approx(400)


def test_its_interval_holds_as_many_batches_as_it_says() -> None:
    inside = 0
    for seed in range(300):
        learner = BatchLearner()
        teach(learner, TRUTH, 12, seed=seed)
        random = np.random.default_rng(10_000 + seed)
        forecast = learner.forecast(rows=3000, tasks=6, confidence=0.9)
        actual_s = TRUTH.duration_s(3000, 6) + random.normal(0.0, 0.02)
        inside += forecast.low_s <= actual_s <= forecast.high_s
    assert 0.84 <= inside / 300 <= 0.96


def test_it_grows_surer_with_every_batch() -> None:
    few, many = BatchLearner(), BatchLearner()
    teach(few, TRUTH, 8)
    teach(many, TRUTH, 200)
    assert np.all(np.diag(many.fit().covariance) < np.diag(few.fit().covariance))


def test_one_point_is_no_line() -> None:
    learner = BatchLearner()
    with pytest.raises(NotLearnedYet):
        learner.forecast(rows=100, tasks=4)
    for _ in range(50):
        learner.observe(rows=1000, tasks=4, duration_s=0.8)
    with pytest.raises(NotLearnedYet, match="too alike"):
        learner.fit()
    with pytest.raises(NotLearnedYet, match="2000 rows on 4 tasks"):
        learner.forecast(rows=2000, tasks=4)
    with pytest.raises(NotLearnedYet):
        learner.forecast(rows=1000, tasks=8)
    assert learner.forecast(rows=1000, tasks=4).mean_s == pytest.approx(0.8)


def test_one_number_of_tasks_answers_for_that_number_alone() -> None:
    learner = BatchLearner()
    teach(learner, TRUTH, 100, tasks=(4,))
    forecast = learner.forecast(rows=4000, tasks=4)
    assert forecast.mean_s == pytest.approx(TRUTH.duration_s(4000, 4), rel=0.02)
    assert forecast.low_s < forecast.mean_s < forecast.high_s
    with pytest.raises(NotLearnedYet):
        learner.forecast(rows=4000, tasks=5)
    with pytest.raises(NotLearnedYet):
        learner.fit()


def test_as_many_batches_as_costs_leave_it_unsure() -> None:
    learner = BatchLearner()
    for rows, tasks in ((1000, 2), (3000, 2), (1000, 8)):
        learner.observe(rows=rows, tasks=tasks, duration_s=TRUTH.duration_s(rows, tasks))
    assert learner.fit().cost.work_s == pytest.approx(TRUTH.work_s)
    assert np.isinf(np.diag(learner.fit().covariance)).all()
    assert learner.forecast(rows=2000, tasks=4).high_s == float("inf")


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 0.3), st.integers(6, 30))
def test_it_is_the_best_fit_without_negative_costs(seed: int, noise_s: float, batches: int) -> None:
    random = np.random.default_rng(seed)
    learner = BatchLearner()
    rows = random.integers(1, 3000, batches).astype(float)
    tasks = random.integers(1, 12, batches)
    tasks[:2] = 1, 9
    durations_s = np.abs(random.normal(0.1 + 0.001 * rows / tasks, noise_s))
    for n, k, d in zip(rows, tasks, durations_s, strict=True):
        learner.observe(rows=float(n), tasks=int(k), duration_s=float(d))
    cost = learner.fit().cost
    design = np.column_stack([np.ones(batches), tasks, rows / tasks])
    expected, _ = nnls(design, durations_s)
    found = np.array([cost.fixed_s, cost.per_task_s, cost.work_s])
    assert found.min() >= 0.0
    assert design @ found == pytest.approx(design @ expected, rel=1e-5, abs=1e-7)


def test_it_forgets_what_no_longer_holds() -> None:
    changed = BatchCost(fixed_s=0.5, per_task_s=0.0, work_s=0.004)
    stubborn, quick = BatchLearner(), BatchLearner(remember=0.95)
    for learner in (stubborn, quick):
        teach(learner, TRUTH, 200)
        teach(learner, changed, 200, seed=2)
    assert quick.fit().cost.work_s == pytest.approx(0.004, rel=0.03)
    assert stubborn.fit().cost.work_s < 0.0037
    assert quick.batches < 45


def test_senseless_batches_are_refused() -> None:
    learner = BatchLearner()
    for bad in (
        {"rows": -1.0, "tasks": 1, "duration_s": 1.0},
        {"rows": 1.0, "tasks": 0, "duration_s": 1.0},
        {"rows": 1.0, "tasks": 1, "duration_s": float("nan")},
    ):
        with pytest.raises(AskedWrongly):
            learner.observe(**bad)
    with pytest.raises(AskedWrongly):
        BatchLearner(remember=0.0)
