"""A load that falls through two segments: the second still has the rows of the higher load."""

import numpy as np

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.target import Target
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import steps

FALL_S = 60


def chain(seed: int) -> World:
    """Noise of 30 %, and a load that falls to a tenth at once."""
    random = np.random.default_rng(seed)
    load = [
        (float(second), (3000.0 if second < FALL_S else 300.0) * float(random.uniform(0.7, 1.3)))
        for second in range(90)
    ]
    segments = tuple(
        SimulatedSegment(
            name=name,
            fixed_s=0.3,
            per_task_s=0.01,
            stages=(Stage(name=f"work-{name}", work_s=2e-3),),
            after=after,
        )
        for name, after in (("main", None), ("second", "main"))
    )
    return World(segments=segments, profile=steps(load), seconds=90.0, cores=16, seed=seed)


def test_a_fall_through_two_segments_asks_for_no_more_cores() -> None:
    for seed in range(4):
        assembly = Assembly(target=Target(3.0), bounds=Bounds(1, 60))
        records = simulate(chain(seed), new_controller(assembly)).records
        wished = [one for one in records[FALL_S:] if one.acted and one.decision.cores is not None]
        grown = [one for one in wished if one.decision.cores > one.measurement.cores_asked]
        assert not grown, f"seed {seed}: {grown[0].decision.reason}"
        assert records[-1].measurement.cores_asked <= 6, "and the cores are given back"
