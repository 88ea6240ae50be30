"""A trial run before the start has to pass whatever the executors are like."""

import pytest

from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.rehearsal import rehearse
from tidegate.control.target import Target


@pytest.mark.parametrize("policy", ["latency", "static", "drs", "flow", "threshold", "mst-7"])
@pytest.mark.parametrize(
    "each, bounds", [(8, Bounds(8, 8)), (8, Bounds(8, 64)), (2, Bounds(2, 10))]
)
def test_a_trial_run_passes_with_executors_of_several_cores(
    policy: str, each: int, bounds: Bounds
) -> None:
    rehearse(Assembly(target=Target(0.25), bounds=bounds, policy=policy, cores_per_executor=each))
