"""Settings that change in the middle of a run: the controller goes on, and a replay follows."""

import dataclasses

from tests.helpers.pipeline_worlds import measured, world
from tidegate.control.approval import REFUSED
from tidegate.control.assemble import continued, new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.controller import Controller
from tidegate.control.decision import Decision
from tidegate.control.limits import Limits
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.control.replay import replay, replay_runs
from tidegate.control.settings_change import settings_change
from tidegate.control.target import Target
from tidegate.sim.microbatch.pipeline import PipelineSimulation
from tidegate.workload.profile import steps

BEFORE = Assembly(target=Target(1.5), bounds=Bounds(1, 12))
LOAD = steps([(0, 1000.0), (8, 4000.0)])


def simulated(changes: dict[int, Assembly], approve=None) -> list[Record]:
    """A simulated run whose settings change before these ticks."""
    run: list[Controller] = [new_controller(BEFORE)]
    ticks = iter(range(1, 1000))

    def tick(measurement: Measurement) -> Record:
        now = changes.get(next(ticks))
        if now is not None:
            run[0] = continued(now, run[0])
        return run[0].tick(measurement, approve=approve)

    outcome = PipelineSimulation(world(LOAD, seconds=40.0, poisson=True)).run(tick)
    return [Record.from_json(record.to_json()) for record in outcome.records]


def test_a_replay_follows_a_change_of_settings() -> None:
    tighter = dataclasses.replace(BEFORE, target=Target(0.9), bounds=Bounds(2, 10))
    other = dataclasses.replace(tighter, policy="drs")
    records = simulated({15: tighter, 30: other})
    assert [record.tick for record in records if record.assembly is not None] == [1, 15, 30]
    assert {record.target_s for record in records[14:]} == {0.9}
    assert [records[28].policy, records[29].policy] == ["latency", "drs"]
    assert replay(records, new_controller(BEFORE)) == [record.decision for record in records]
    (run,) = replay_runs(records, lambda record: Assembly.of(record.assembly or {}))
    assert all(one.same for one in run)
    kept = [dataclasses.replace(one, assembly=None) for one in records[14:]]
    stale = replay([records[0], *records[1:14], *kept], new_controller(BEFORE))
    assert stale != [record.decision for record in records], "the change must matter"


def test_a_replay_repeats_what_was_approved() -> None:
    answers = iter(range(1000))

    def approve(decision: Decision, now: Measurement) -> Decision | str:
        number = next(answers)
        if number % 3 == 0:
            return "not now"
        if number % 3 == 1 and decision.cores is not None:
            return dataclasses.replace(decision, cores=decision.cores + 1)
        return decision

    records = simulated({}, approve)
    assert any((record.held_back or "").startswith(REFUSED) for record in records)
    assert any(record.proposed is not None for record in records)
    again = replay(records, new_controller(BEFORE))
    changes = [(one.cores, dict(one.tasks)) for one in again]
    assert changes == [(r.decision.cores, dict(r.decision.tasks)) for r in records]


def test_what_is_counted_goes_on() -> None:
    limits = Limits(t_ra_s=60.0, first_after_s=5.0)
    records = simulated({15: dataclasses.replace(BEFORE, limits=limits)})
    assert [record.tick for record in records] == list(range(1, 41))
    changed = max(one.measurement.at_s for one in records[:14] if one.acted and one.decision.cores)
    said = [record.held_back for record in records[14:] if record.held_back is not None]
    assert any("the last change was" in one for one in said), "the last change is remembered"
    assert not any("the run began" in one for one in said), "and so is the start"
    assert changed + 60.0 > records[-1].measurement.at_s
    assert all("main.w_s" in record.beliefs for record in records[14:]), "nothing is learned anew"


def test_new_bounds_hold_at_once() -> None:
    run = new_controller(BEFORE)
    run.tick(measured(0, cores=8))
    fewer = continued(dataclasses.replace(BEFORE, bounds=Bounds(1, 3)), run)
    record = fewer.tick(measured(1, cores=8))
    assert record.acted and record.decision.cores == 3
    assert "settings changed: cores 1-12 to 1-3" in record.decision.notes
    more = continued(dataclasses.replace(BEFORE, bounds=Bounds(10, 12)), fewer)
    record = more.tick(measured(2, cores=3))
    assert record.acted and record.decision.cores is not None and record.decision.cores >= 10


def test_whole_executors_go_when_the_bounds_shrink() -> None:
    pairs = dataclasses.replace(BEFORE, cores_per_executor=2)
    run = new_controller(pairs)
    run.tick(measured(0, cores=8))
    fewer = continued(dataclasses.replace(pairs, bounds=Bounds(1, 5)), run)
    assert fewer.tick(measured(1, cores=8)).decision.cores == 4


def test_a_lost_record_is_told_again() -> None:
    run = continued(dataclasses.replace(BEFORE, target=Target(5.0)), new_controller(BEFORE))
    assert run.tick(measured(0)).assembly is not None
    run.tell_again()
    record = run.tick(measured(1))
    assert record.assembly is not None
    assert "settings changed: target 1.5 s to 5 s" in record.decision.notes
    assert run.tick(measured(2)).assembly is None


def test_the_words() -> None:
    after = dataclasses.replace(
        BEFORE, policy="drs", limits=Limits(dry_run=True, t_ra_s=30.0), bounds=Bounds(2, 4)
    )
    assert settings_change(BEFORE, after) == (
        "settings changed: cores 1-12 to 2-4, policy latency to drs, dry run off to on,"
        " time between changes 0 s to 30 s"
    )
