"""A target on a percentile is held by the predicted percentile, in the simulator."""

import numpy as np
import pytest

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.target import Target
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import constant


@pytest.mark.parametrize("segments", [1, 2])
def test_a_p95_target_is_held_and_predicted(segments: int) -> None:
    target = Target(1.5 * segments, 95)
    chain = tuple(
        SimulatedSegment(
            name="main" if number == 0 else "later",
            fixed_s=0.3 - 0.1 * number,
            per_task_s=0.005,
            stages=(Stage(name=f"o{number}", work_s=2e-3),),
            after=None if number == 0 else "main",
        )
        for number in range(segments)
    )
    world = World(
        segments=chain, profile=constant(1500.0), seconds=240.0, cores=4, noise=0.08, poisson=True
    )
    assembly = Assembly(target=target, bounds=Bounds(1, 40))
    outcome = simulate(world, new_controller(assembly))
    late = [one.p95_s for one in outcome.sojourns[80:] if one is not None]
    assert np.mean(np.array(late) <= target.latency_s) > 0.95
    expected = [record.beliefs["expected_s"] for record in outcome.records[120:]]
    assert np.median(expected) == pytest.approx(np.median(late), rel=0.15)
    tail = [
        record.beliefs["percentile_ratio"] / target.steady_ratio for record in outcome.records[120:]
    ]
    assert max(tail) < 1.35
