"""A reason says what is so: it never calls cores right with which the target is missed."""

import re

import pytest

from tests.helpers.deciding import latency_policy
from tests.helpers.pipeline_worlds import world
from tests.unit.control.latency.test_policy import after, taught
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.target import Target
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.units import parse_duration
from tidegate.workload.profile import constant, steps

FITS = re.compile(r"^(.*): (?:mean|p\d\d) latency ([\d.]+ \w+) expected, target ([\d.]+ \w+)")


def test_at_the_maximum_it_is_said_that_there_are_too_few() -> None:
    policy = taught(latency_policy(1.0, bounds=Bounds(1, 2)))
    reason = after(policy, 1300.0, 2, 20).reason
    assert reason.startswith("2 cores are the maximum, and too few: mean latency ")
    assert reason.endswith("expected, target 1 s")


def test_at_the_minimum_it_is_said_that_it_is_the_minimum() -> None:
    policy = taught(latency_policy(5.0, bounds=Bounds(4, 12)))
    reason = after(policy, 300.0, 4, 40).reason
    assert reason.startswith("4 cores are the minimum: mean latency ")


def test_below_the_floor_it_is_said_that_more_would_not_help() -> None:
    policy = taught(latency_policy(0.2, bounds=Bounds(1, 12)))
    decision = after(policy, 200.0, 3, 40)
    held = decision.reason
    assert "hardly help" in held or decision.cores is not None
    assert any("below this pipeline's floor" in note for note in decision.notes)


@pytest.mark.parametrize("most", [2, 4, 12])
@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("target_s", [0.3, 1.0, 3.0])
def test_no_reason_contradicts_its_figures(least: int, most: int, target_s: float) -> None:
    load = steps([(0, 500.0), (30, 2500.0), (60, 800.0)]) if most > 2 else constant(1500.0)
    assembly = Assembly(target=Target(target_s), bounds=Bounds(least, most))
    seen = 0
    for record in simulate(world(load, seconds=100.0), new_controller(assembly)).records:
        found = FITS.match(record.decision.reason)
        if found is None:
            continue
        seen += 1
        why, expected, target = found.groups()
        late = parse_duration(expected) > parse_duration(target)
        assert late == bool(re.search("too few|hardly help|as well", why)), record.decision.reason
    assert seen
