"""The corrections of predicted latencies: learned while it is quiet, and kept across a restart."""

import json

import pytest

from tidegate.control.latency.calibration import Calibration
from tidegate.control.learning.pipeline_model import PipelineModel
from tidegate.control.measurement import Latency, Measurement, SegmentMeasurement
from tidegate.control.target import Target
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.microbatch.station import MicroBatchStation

STATION = MicroBatchStation(cost=BatchCost(fixed_s=0.5, work_s=0.02), arrival_rate=100.0, noise=0.1)
TASKS = 4


class Settled(PipelineModel):
    """A model whose segments have run for a while."""

    def settled(self, measurement: Measurement) -> bool:
        return True


def at(second: int, latency: Latency) -> Measurement:
    segment = SegmentMeasurement(name="main", arrival_rate=100.0, backlog_rows=50.0, tasks=TASKS)
    return Measurement(
        at_s=1e9 + second,
        interval_s=1.0,
        arrival_rate=100.0,
        processed_rate=100.0,
        backlog_rows=50.0,
        cores_asked=TASKS,
        cores_granted=TASKS,
        saturated=False,
        latency=latency,
        segments=(segment,),
    )


def calibrated(target: Target, times: float, tail: float) -> Calibration:
    """After a minute in which the mean is `times` the predicted one, and the tail heavier."""
    mean_s = times * STATION.sojourn(TASKS).mean_s
    p95_s = times * tail * STATION.percentile(TASKS, 0.95)
    measured = Latency(mean_s=mean_s, p50_s=mean_s, p95_s=p95_s, p99_s=p95_s)
    found = Calibration(target, Settled())
    for second in range(120):
        found.learn(at(second, measured), [STATION])
    return found


def test_a_percentile_is_predicted_and_its_correction_learned() -> None:
    found = calibrated(Target(3.0, 95), 1.2, 1.1)
    assert found.bias == pytest.approx(1.2, rel=0.01)
    assert found.tail == pytest.approx(1.1, rel=0.01)
    expected_s = found.factor * STATION.percentile(TASKS, 0.95)
    assert expected_s == pytest.approx(1.2 * 1.1 * STATION.percentile(TASKS, 0.95), rel=0.01)
    assert found.ratio * STATION.sojourn(TASKS).mean_s == pytest.approx(
        1.1 * STATION.percentile(TASKS, 0.95), rel=0.01
    )


def test_a_prediction_that_is_right_needs_no_correction() -> None:
    found = calibrated(Target(3.0, 95), 1.0, 1.0)
    assert found.factor == pytest.approx(1.0, rel=1e-6)
    # The steady ratio of one segment without noise would be too low here.
    assert found.ratio > Target(3.0, 95).steady_ratio * 1.01


def test_the_corrections_survive_a_restart_and_fade_with_age() -> None:
    before = calibrated(Target(3.0, 95), 1.3, 1.1)
    kept = json.loads(json.dumps(before.learned()))
    after = Calibration(Target(3.0, 95), PipelineModel())
    after.recall(kept, 0.0)
    assert (after.bias, after.tail) == (before.bias, before.tail)
    later = Calibration(Target(3.0, 95), PipelineModel())
    later.recall(kept, 30 * 86_400.0)
    assert 1.0 < later.bias < 1.0 + 0.2 * (before.bias - 1.0)


def test_nothing_to_recall_leaves_the_prediction_as_it_is() -> None:
    found = Calibration(Target(3.0), PipelineModel())
    found.recall({}, 0.0)
    assert found.factor == 1.0


def test_a_tail_is_recalled_for_the_same_percentile_alone() -> None:
    """With a target for the mean, nothing would ever correct it again."""
    kept = json.loads(json.dumps(calibrated(Target(3.0, 95), 1.3, 1.4).learned()))
    for target in (Target(3.0), Target(3.0, 99)):
        found = Calibration(target, PipelineModel())
        found.recall(kept, 0.0)
        assert found.bias == pytest.approx(1.3, rel=0.01) and found.tail == 1.0
    unmarked = {name: value for name, value in kept.items() if name != "share"}
    found = Calibration(Target(3.0, 95), PipelineModel())
    found.recall(unmarked, 0.0)
    assert found.tail == 1.0
