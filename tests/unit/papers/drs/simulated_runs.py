"""Runs of DRS's applications in a simulator: the records that a run on Spark would have left."""

import itertools
from collections.abc import Mapping

from tidegate.apps.application import Verdict
from tidegate.apps.catalogue import application
from tidegate.apps.run_application import ApplicationRun
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.papers.drs.runs import K_MAX
from tidegate.sim.microbatch.pipeline import PipelineSimulation
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import constant

Split = tuple[int, ...]
VLD = application("vld")
RATE = 13.0
WORK_S = (0.42, 0.46, 0.017)
"""Of each operator of logo detection, so that 10:11:1 is the best split of 22 cores."""
FIXED_S = 0.5
RIGHT = Verdict(correct=True, said="all frames are right")
WRONG = Verdict(correct=False, said="a frame is missing")


def simulated_run(
    split: Split,
    *,
    seconds: float = 65.0,
    changes: Mapping[int, Split] | None = None,
    cut: bool = True,
    slower: float = 1.0,
    verdict: Verdict = RIGHT,
) -> ApplicationRun:
    """A run with this split, which `changes` after some seconds.

    `slower` is how many times as long a row takes as usual.
    """
    stages = [
        Stage(name=name, work_s=slower * work_s)
        for name, work_s in zip(VLD.operators, WORK_S, strict=True)
    ]
    segments = [SimulatedSegment(name="vld", fixed_s=FIXED_S, stages=tuple(stages))]
    if cut:
        segments = [
            SimulatedSegment(
                name=stage.name,
                fixed_s=FIXED_S,
                stages=(stage,),
                after=stages[number - 1].name if number else None,
            )
            for number, stage in enumerate(stages)
        ]
    world = World(
        segments=tuple(segments),
        profile=constant(RATE),
        seconds=seconds,
        cores=K_MAX,
        noise=0.02,
    )
    simulation = PipelineSimulation(world)
    simulation.act(_split(split))
    due, ticks = changes or {}, itertools.count(1)

    def tick(measurement: Measurement) -> Record:
        number = next(ticks)
        return Record(
            tick=number,
            policy="drs-fixed",
            target_s=60.0,
            measurement=measurement,
            decision=_split(due[number]) if number in due else hold(""),
            acted=number in due,
        )

    records = list(simulation.run(tick).records)
    return ApplicationRun(name="vld", seconds=seconds, records=records, arrived=0, verdict=verdict)


def _split(split: Split) -> Decision:
    return Decision(reason="", tasks=dict(zip(VLD.operators, split, strict=True)))
