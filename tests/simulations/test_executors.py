"""Cores that come as whole executors, some seconds after they are asked for."""

import itertools

from tests.helpers.pipeline_worlds import world
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.workload.profile import constant, steps

PER_EXECUTOR = 4


def run(rate: float = 0.0, **changes: object) -> tuple[Record, ...]:
    made = Assembly(
        target=Target(2.0), bounds=Bounds(PER_EXECUTOR, 24), cores_per_executor=PER_EXECUTOR
    )
    load = {"profile": constant(rate)} if rate else {}
    where = world(**{"seconds": 120.0, "cores": 24, "grant_s": 5.0, **load, **changes})
    return simulate(where, new_controller(made)).records


def tasks(record: Record) -> int:
    return sum(segment.tasks for segment in record.measurement.segments)


def test_a_part_of_an_executor_is_never_planned() -> None:
    """Five of eight cores would be enough: it neither idles on three nor goes back and forth."""
    for rate in (2500.0, 5500.0, 9000.0):
        found = run(rate)
        settled = [tasks(record) for record in found[40:]]
        changes = sum(one != other for one, other in itertools.pairwise(settled))
        assert all(count % PER_EXECUTOR == 0 for count in settled)
        assert changes <= 2


def test_no_task_is_started_before_its_core_has_come() -> None:
    found = run(profile=steps([(0.0, 1500.0), (60.0, 9000.0)]), cores=4)
    assert max(record.measurement.cores_asked for record in found) > 4
    for record in found:
        assert tasks(record) <= record.measurement.cores_granted
