"""DS2 on a pipeline: it sees rates over a window, and scales both ways within a run of minutes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.pipeline_worlds import BOUNDS, TARGET_S, measured, world
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.baselines.in_window import InWindow
from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement
from tidegate.control.target import Target
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.workload.profile import steps


class Sees:
    """Keeps what it is shown."""

    name = "sees"

    def __init__(self) -> None:
        self.seen: list[Measurement] = []

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        self.seen.append(measurement)
        return hold("it only looks")


@given(st.lists(st.floats(0.0, 1e5), min_size=1, max_size=30), st.integers(1, 8))
def test_a_policy_in_a_window_sees_means(rates: list[float], ticks: int) -> None:
    inner = Sees()
    policy = InWindow(inner, ticks)
    assert policy.name == "sees"
    for number, rate in enumerate(rates):
        there = replace(measured(number), arrival_rate=rate, processed_rate=2.0 * rate)
        policy.decide(there, Constraints(Bounds(1, 8)))
    last = inner.seen[-1]
    expected = np.mean(rates[-ticks:])
    assert last.arrival_rate == pytest.approx(expected)
    assert last.processed_rate == pytest.approx(2.0 * expected)


def test_ds2_follows_a_load_up_and_down() -> None:
    """A surge of 60 s: it has the cores of a utilisation of 0.7, and gives them back."""
    load = steps([(0, 1000.0), (60, 5000.0), (120, 1000.0)])
    assembly = Assembly(target=Target(TARGET_S), bounds=BOUNDS, policy="ds2")
    outcome = simulate(world(load, seconds=300.0), new_controller(assembly))
    cores = np.array(outcome.cores)
    # 1 ms of work a row, on keys that are spread unevenly over the tasks.
    assert 5.0 / 0.91 <= cores[105] <= 5.0 / 0.49 + 2
    assert cores[-1] <= 1.0 / 0.49 + 1
    assert len(outcome.changes()) <= 300 / 15
