"""A program that waits for rows gives its executors back, and gets them when rows come.

The controller is that of Spark; the world is a query of others on executors of one core, which are
granted after some seconds.
"""

from typing import Any

import pytest

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.target import Target
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import Profile, steps

EXECUTORS, GRANT_S, TARGET_S = 3, 5.0, 6.0


def run(profile: Profile, seconds: float, **changes: Any) -> Outcome:
    program = SimulatedSegment(fixed_s=1.0, stages=(Stage(name="count", work_s=1e-3),))
    settings: dict[str, Any] = {
        "foreign": True,
        "cores": EXECUTORS,
        "grant_s": GRANT_S,
        "prompt": False,
        **changes,
    }
    world = World(segments=(program,), profile=profile, seconds=seconds, **settings)
    assembly = Assembly(target=Target(TARGET_S), bounds=Bounds(1, EXECUTORS))
    return simulate(world, new_controller(assembly))


def test_executors_go_before_the_first_row_and_come_with_the_surge() -> None:
    outcome = run(steps([(0, 0.0), (100, 400.0), (200, 1600.0), (300, 400.0)]), 400.0)
    cores = outcome.cores
    assert cores[60] == 1, "no row has come for a minute"
    assert set(cores[110:199]) == {1}
    assert max(cores[200:230]) > 1
    assert cores[-1] == 1
    assert outcome.within(TARGET_S, after_s=100) > 0.9


@pytest.mark.parametrize("pause_s", [10.0, 20.0])
def test_a_short_pause_is_no_idle_time(pause_s: float) -> None:
    busy = steps([(0, 2000.0), (100, 0.0), (100 + pause_s, 2000.0)])
    records = run(busy, 150.0).records
    assert not any("no row has come" in record.decision.reason for record in records)


def test_a_restart_into_a_backlog_keeps_them() -> None:
    """60,000 rows take the first batch half a minute, and nothing else is known meanwhile."""
    outcome = run(steps([(0, 100.0)]), 60.0, backlog_rows=100_000.0, cold_s=20.0)
    first = next(
        record.tick
        for record in outcome.records
        if any(part.batches for part in record.measurement.segments)
    )
    assert first > 50
    assert set(outcome.cores[:first]) == {EXECUTORS}


def test_rows_now_and_then_do_not_make_executors_come_and_go() -> None:
    """Ten rows every 45 s: one executor is enough for them, too."""
    stairs = [(at, 10.0 if at % 45 == 0 else 0.0) for at in range(0, 450, 1)]
    outcome = run(steps([(float(at), rate) for at, rate in stairs]), 450.0)
    assert len(outcome.changes()) <= 2
