"""MST's policies on the simulated pipeline: they learn its capacity and keep their QoS."""

from functools import cache

import numpy as np
import pytest

from tests.helpers.pipeline_worlds import world
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.target import Target
from tidegate.models.capacity.measured import CapacitySample, MeasuredCapacity
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.workload.profile import Profile, sine, steps

TARGET_S = 1.5
BOUNDS = Bounds(1, 16)
DAILY = sine(3000.0, 2000.0, 300.0)
COST = BatchCost(fixed_s=0.30, per_task_s=0.01, work_s=1e-3)
"""That of the world, as it would be without imbalance."""
WARM_S = 60.0
SECONDS = 600.0
"""Two periods of the load."""


@cache
def run(
    policy: str,
    load: Profile = DAILY,
    *,
    grant_s: float = 0.0,
    capacity: MeasuredCapacity | None = None,
) -> Outcome:
    assembly = Assembly(target=Target(TARGET_S), bounds=BOUNDS, policy=policy, capacity=capacity)
    return simulate(world(load, seconds=SECONDS, grant_s=grant_s), new_controller(assembly))


def satisfied(outcome: Outcome) -> float:
    """Eq. 22 after a minute: the share of seconds whose load was below the cores' capacity."""
    seconds = [one.measurement for one in outcome.records[int(WARM_S) :]]
    capacity = [COST.throughput(one.cores_granted, TARGET_S) for one in seconds]
    load = [one.arrival_rate for one in seconds]
    return float(np.mean(np.array(capacity) > np.array(load)))


def least() -> float:
    """Core-seconds of the ground truth: each second the fewest cores that sustain it."""
    return sum(
        next(k for k in range(1, 17) if k == 16 or COST.throughput(k, TARGET_S) > DAILY.rate(at))
        for at in np.arange(SECONDS)
    )


@pytest.mark.parametrize("qos", [0.9, 0.95])
def test_mst_7_keeps_its_qos_with_nothing_known_before(qos: float) -> None:
    outcome = run(f"mst-7(cycle=10s, qos={qos})")
    assert satisfied(outcome) >= qos
    assert outcome.within(TARGET_S, after_s=WARM_S) >= qos
    assert outcome.core_seconds <= 1.7 * least()


def test_each_technique_helps_and_all_together_help_most() -> None:
    """The order of the paper's figure 7, among the policies that learn online."""
    names = ("mst-2", "mst-3", "mst-6", "mst-7")
    found = {name: run(name).within(TARGET_S, after_s=WARM_S) for name in names}
    assert found["mst-2"] < min(found["mst-3"], found["mst-6"])
    assert found["mst-7"] >= max(found["mst-3"], found["mst-6"]) - 0.01


def test_the_priced_policy_keeps_its_qos_for_less() -> None:
    mst, priced = run("mst-7"), run("priced-capacity")
    assert satisfied(priced) >= 0.945
    assert priced.core_seconds < mst.core_seconds


def test_a_plan_is_made_as_long_before_as_cores_take_to_come() -> None:
    in_time = run("mst-7(cycle=20s, startup=8s)", grant_s=8.0)
    assert satisfied(in_time) >= 0.95


def test_with_a_measured_capacity_nothing_needs_to_be_learned() -> None:
    batch_s = 1.2
    measured = MeasuredCapacity(
        pipeline="held",
        samples=tuple(
            CapacitySample(
                cores=k,
                rows_per_s=(batch_s - COST.overhead_s(k)) / COST.row_s(k, 1.1) / batch_s * noise,
                batch_s=batch_s,
            )
            for k in (1, 2, 4, 8, 16)
            for noise in (0.98, 1.02)
        ),
        fixed_s=COST.fixed_s,
        per_task_s=COST.per_task_s,
    )
    outcome = run("mst-5", capacity=measured)
    assert satisfied(outcome) >= 0.95
    assert outcome.within(TARGET_S) >= 0.95
    assert outcome.core_seconds <= 1.3 * least()


def test_a_pipeline_with_too_many_cores_learns_that_it_has() -> None:
    quiet = steps([(0, 500.0)])
    assembly = Assembly(target=Target(TARGET_S), bounds=BOUNDS, policy="mst-7(cycle=5s)")
    outcome = simulate(world(quiet, seconds=60.0, cores=12), new_controller(assembly))
    assert outcome.cores[-1] <= 3
