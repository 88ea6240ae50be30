"""A calibration on a modelled pipeline: what it measures, what it keeps, what it predicts."""

import numpy as np
import pytest

from tidegate.apps.capacity import calibrate as module
from tidegate.apps.capacity.calibrate import CalibrationStep, calibrate
from tidegate.apps.capacity.calibration import CapacityCalibration
from tidegate.apps.capacity.full_flow import FullFlow
from tidegate.apps.capacity.measure_cores import BatchGuess, Throughput
from tidegate.errors import AskedWrongly
from tidegate.models.capacity.calibration_plan import CalibrationPlan
from tidegate.models.capacity.measured import MeasuredCapacity
from tidegate.models.microbatch.batch_cost import BatchCost

COST = BatchCost(fixed_s=0.25, per_task_s=0.01, work_s=0.001)


class Machine:
    """Measures by the cost of a micro-batch, with a little noise; stops at a measurement."""

    def __init__(self, noise: float = 0.005, interrupted_at: int | None = None) -> None:
        self.rng = np.random.default_rng(2)
        self.noise = noise
        self.interrupted_at = interrupted_at
        self.asked: list[tuple[int, BatchGuess | None]] = []

    def __call__(self, spark, flow, cores, plan, *, guess=None, on_samples) -> Throughput:
        if self.interrupted_at == len(self.asked):
            raise KeyboardInterrupt
        self.asked.append((cores, guess))
        batch_s, overhead_s = plan.batch_s, COST.overhead_s(cores)
        rows = (batch_s - overhead_s) / COST.row_s(cores)
        noisy = 1.0 + self.noise * self.rng.standard_normal()
        on_samples((rows / batch_s,))
        return Throughput(
            samples=(rows / batch_s,) * 6,
            converged=True,
            rows_per_s=rows / batch_s * noisy,
            batch_rows=round(rows),
            batch_s=batch_s / noisy,
            overhead_s=overhead_s,
        )


FLOW = FullFlow(name="ads", behind=lambda *given: None, most_tasks=24)  # type: ignore[arg-type, return-value]


def calibrated(
    monkeypatch, plan: CalibrationPlan, machine: Machine | None = None
) -> tuple[CapacityCalibration, Machine, list[CalibrationStep]]:
    measuring = machine or Machine()
    monkeypatch.setattr(module, "measure_cores", measuring)
    steps: list[CalibrationStep] = []
    found = calibrate(None, FLOW, plan, on_step=steps.append)  # type: ignore[arg-type]
    return found, measuring, steps


def test_counts_are_measured_up_and_down_after_a_warm_up(monkeypatch) -> None:
    plan = CalibrationPlan(checks=(5, 8), validations=0)
    found, machine, steps = calibrated(monkeypatch, plan)
    assert [cores for cores, _ in machine.asked] == [3, 1, 2, 3, 4, 6, 6, 4, 3, 2, 1, 5, 8, 8, 5]
    assert machine.asked[0][1] is None
    assert all(guess is not None for _, guess in machine.asked[1:])
    assert [one.use for one in found.runs] == ["fit"] * 10 + ["check"] * 4
    assert steps[0].total == steps[-1].total == 15
    assert steps[-1].done == 14


def test_the_rows_of_a_batch_are_guessed_from_the_measurement_before(monkeypatch) -> None:
    _, machine, _ = calibrated(monkeypatch, CalibrationPlan(validations=0), Machine(noise=0.0))
    for cores, guess in machine.asked[1:]:
        wanted = (2.0 - COST.overhead_s(cores)) / COST.row_s(cores)
        assert guess is not None and guess.rows == pytest.approx(wanted, rel=0.05)


def test_a_pipeline_with_a_large_overhead_is_measured_with_longer_batches(monkeypatch) -> None:
    found, _, _ = calibrated(monkeypatch, CalibrationPlan(batch_s=0.4, validations=0))
    assert found.plan.batch_s == pytest.approx(2 * COST.overhead_s(3))


def test_the_prediction_holds_at_counts_that_were_not_measured(monkeypatch) -> None:
    found, _, _ = calibrated(monkeypatch, CalibrationPlan(checks=(5, 8)))
    assert [one.cores for one in found.checks] == [5, 8]
    for one in found.checks:
        assert abs(one.error) < 0.05
        assert one.error == pytest.approx(one.predicted.rows_per_s / found.rates[one.cores] - 1.0)


def test_checks_are_no_part_of_the_fit_or_of_the_file(monkeypatch) -> None:
    with_checks, _, _ = calibrated(monkeypatch, CalibrationPlan(checks=(5, 8), most=16))
    without, _, _ = calibrated(monkeypatch, CalibrationPlan(most=16))
    assert {5, 8} & set(with_checks.rates)
    assert not {5, 8} & {one.cores for one in with_checks.measured.samples}
    if not {5, 8} & set(without.rates):  # else they were validation points without the checks
        assert with_checks.measured == without.measured


def test_validation_points_are_measured_where_the_curves_disagree(monkeypatch) -> None:
    monkeypatch.setattr(module, "validation_counts", lambda samples, **given: [10])
    found, machine, steps = calibrated(monkeypatch, CalibrationPlan(checks=(5,)))
    uses = {one.use: one.cores for one in found.runs}
    assert uses["validation"] == 10
    assert [cores for cores, _ in machine.asked[-4:]] == [10, 10, 5, 5]
    assert steps[-1].total == 15
    assert 10 in {one.cores for one in found.measured.samples}


def test_the_file_says_what_a_batch_takes_besides_its_rows(monkeypatch) -> None:
    found, _, _ = calibrated(monkeypatch, CalibrationPlan(validations=0))
    measured = found.measured
    assert measured.fixed_s == pytest.approx(COST.fixed_s, rel=0.02)
    assert measured.per_task_s == pytest.approx(COST.per_task_s, rel=0.05)
    assert measured.curve == found.fit().curve
    assert MeasuredCapacity.of(measured.document()) == measured


def test_the_throughput_within_a_latency_is_that_of_the_batches_cost(monkeypatch) -> None:
    found, _, _ = calibrated(monkeypatch, CalibrationPlan(validations=0), Machine(noise=0.001))
    for target_s in (1.0, 3.0, 10.0):
        for one in found.fit(target_s).predict([2, 4, 6]):
            assert one.rows_per_s == pytest.approx(COST.throughput(one.cores, target_s), rel=0.03)


@pytest.mark.parametrize("measurements", [1, 4, 12])
def test_ctrl_c_keeps_what_was_measured(monkeypatch, measurements: int) -> None:
    plan = CalibrationPlan(checks=(5, 8), validations=0)
    machine = Machine(interrupted_at=measurements + 1)
    found, _, _ = calibrated(monkeypatch, plan, machine)
    assert found.interrupted
    assert len(found.runs) == measurements
    assert found.fit().predict([1, 7])[0].rows_per_s > 0.0
    assert len(found.measured.samples) == min(measurements, 10)


@pytest.mark.parametrize("measurements", [-1, 0])
def test_ctrl_c_before_the_first_measurement_leaves_nothing(monkeypatch, measurements: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        calibrated(monkeypatch, CalibrationPlan(), Machine(interrupted_at=measurements + 1))


def test_more_cores_than_tasks_are_refused(monkeypatch) -> None:
    with pytest.raises(AskedWrongly, match="at most 24 tasks"):
        calibrated(monkeypatch, CalibrationPlan(counts=(1, 25)))
