"""What the controller holds whatever a policy says, and a replay that decides the same again."""

import dataclasses
import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.pipeline_worlds import BOUNDS, controller, measured, world
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.claim import Claim
from tidegate.control.constraints import Constraints
from tidegate.control.controller import Controller
from tidegate.control.decision import Decision, hold
from tidegate.control.floors import floors_of
from tidegate.control.limits import Limits, excluded_periods
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.control.replay import replay
from tidegate.control.shards.balancer import Balancer
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.workload.profile import steps


class Wishes:
    """A policy that says what it is told to."""

    name = "wishes"

    def __init__(self, wishes: list[int | None]) -> None:
        self._wishes = iter(wishes)
        self.calls = 0

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        self.calls += 1
        wish = next(self._wishes)
        if wish is None:
            return hold("nothing")
        return Decision(
            reason="told to", cores=wish, tasks={"work": wish}, expected_latency_s=float(abs(wish))
        )


def drive(run: Controller, wishes: list[int | None], **changes: object) -> list[Record]:
    """Ticks a second apart, each acted decision in force at the next."""
    records, cores = [], 2
    for tick in range(len(wishes)):
        record = run.tick(measured(tick, cores=cores, **changes))
        if record.acted and record.decision.cores is not None:
            cores = record.decision.cores
        records.append(record)
    return records


WISHES = st.lists(st.one_of(st.none(), st.integers(-5, 40)), min_size=1, max_size=25)


@settings(max_examples=80, deadline=None)
@given(WISHES, st.integers(1, 6), st.integers(0, 10), st.floats(0.0, 8.0))
def test_never_outside_bounds_and_t_ra_is_held(
    wishes: list[int | None], least: int, more: int, t_ra_s: float
) -> None:
    bounds = Bounds(least, least + more)
    run = Controller(Wishes(wishes), bounds=bounds, limits=Limits(t_ra_s=t_ra_s))
    records = drive(run, wishes)
    for record in records:
        if record.decision.cores is not None:
            assert bounds.least <= record.decision.cores <= bounds.most
        assert all(1 <= count <= bounds.most for count in record.decision.tasks.values())
        assert record.acted == (not record.decision.holds and record.held_back is None)
    changes = [r.measurement.at_s for r in records if r.acted]
    assert all(b - a >= t_ra_s for a, b in itertools.pairwise(changes))


@settings(max_examples=80, deadline=None)
@given(WISHES, st.floats(0.0, 8.0), st.floats(0.0, 8.0))
def test_no_change_before_the_first_may_be_made(
    wishes: list[int | None], first_s: float, t_ra_s: float
) -> None:
    limits = Limits(first_after_s=first_s, t_ra_s=t_ra_s)
    records = drive(Controller(Wishes(wishes), bounds=BOUNDS, limits=limits), wishes)
    begun_s = records[0].measurement.at_s
    wanted = [r for r in records if not r.decision.holds]
    early = [r for r in wanted if r.measurement.at_s - begun_s < first_s]
    assert all("(first_change)" in (r.held_back or "") for r in early)
    later = [r for r in wanted if r not in early]
    assert not later or later[0].acted


@settings(max_examples=40, deadline=None)
@given(WISHES)
def test_dry_run_never_acts(wishes: list[int | None]) -> None:
    run = Controller(Wishes(wishes), bounds=BOUNDS, limits=Limits(dry_run=True))
    records = drive(run, wishes)
    assert not any(record.acted for record in records)
    wanted = [record for record in records if not record.decision.holds]
    assert all(record.held_back == "dry run" for record in wanted)
    assert all(record.predicted_latency_s is None for record in records)


def test_stale_numbers_are_not_shown_to_the_policy() -> None:
    policy = Wishes([9])
    record = Controller(policy, bounds=BOUNDS).tick(measured(1, stale="no batch ended for 12 s"))
    assert policy.calls == 0 and not record.acted
    assert record.decision.holds and "no batch ended for 12 s" in record.decision.reason


def test_a_silent_pipeline_does_not_hold_what_others_need() -> None:
    policy = Wishes([9])
    stale = measured(1, cores=6, stale="no batch ended for 12 s")

    def claim(measurement: Measurement) -> Claim:
        return Claim(cores=measurement.cores_asked)

    def share(claim: Claim) -> int | None:
        return 2

    record = Controller(policy, bounds=BOUNDS, claim=claim).tick(stale, share)
    assert policy.calls == 0
    assert record.acted
    assert record.decision.cores == 2
    slow = Controller(Wishes([9]), bounds=BOUNDS, claim=claim, limits=Limits(t_ra_s=60.0))
    assert slow.tick(stale, share).acted
    assert not slow.tick(measured(2, cores=2)).acted  # T_ra counts from there
    dry = Controller(policy, bounds=BOUNDS, claim=claim, limits=Limits(dry_run=True)).tick(
        stale, share
    )
    assert (dry.acted, dry.held_back) == (False, "dry run")


def test_cooldowns_hold_each_direction_back() -> None:
    limits = Limits(scale_out_cooldown_s=2.0, scale_in_cooldown_s=4.0)
    run = Controller(Wishes([6, 8, 8, 3, 3, 3, 3]), bounds=BOUNDS, limits=limits)
    records = drive(run, [0] * 7)
    assert [record.acted for record in records] == [True, False, True, False, False, False, True]
    assert "before adding cores" in (records[1].held_back or "")
    assert "before releasing cores" in (records[3].held_back or "")


def test_excluded_periods_hold_and_emergencies_only_if_asked() -> None:
    at = measured(0).at_s % 86_400
    begin = f"{int(at // 3600):02}:{int(at % 3600 // 60):02}"
    end = f"{int(at // 3600) + 1:02}:00"
    periods = excluded_periods([f"{begin}-{end}"])
    for emergencies, saturated, acts in (
        (False, True, False),
        (True, False, False),
        (True, True, True),
    ):
        limits = Limits(excluded=periods, emergencies=emergencies)
        run = Controller(Wishes([8]), bounds=BOUNDS, limits=limits)
        record = drive(run, [0], saturated=saturated)[0]
        assert record.acted is acts
        assert acts or "no changes within" in (record.held_back or "")


def test_a_floor_raises_what_the_policy_is_content_with() -> None:
    at_s = measured(0).at_s
    begin = f"{int(at_s % 86_400 // 3600):02}:00"
    floors = floors_of([f"{begin}-23:59 cores>=6"])
    run = Controller(Wishes([None, 3, 9]), bounds=BOUNDS, limits=Limits(floors=floors))
    first, second, third = drive(run, [0, 0, 0])
    assert (
        first.decision.cores == 6
        and "the schedule (floors) asks for at least 6 cores" in first.decision.reason
    )
    assert second.decision.cores in (6, None), "no fewer than the floor"
    assert third.decision.cores == 9, "more than the floor is the policy's"


def test_minimum_above_maximum_is_refused() -> None:
    with pytest.raises(AskedWrongly, match="cannot both hold"):
        Controller(Wishes([]), bounds=Bounds(5, 3))


def test_what_was_predicted_is_compared_with_what_came() -> None:
    run = Controller(Wishes([4, None]), bounds=BOUNDS)
    first, second = drive(run, [0, 0], latency_s=5.0)
    assert first.predicted_latency_s is None
    assert second.predicted_latency_s == 4.0
    assert second.beliefs["prediction_error"] == pytest.approx(0.25)


def test_tasks_may_follow_granted_cores_within_t_ra() -> None:
    class Follows(Wishes):
        def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
            if measurement.cores_granted == 6:
                return Decision(reason="use them", tasks={"work": 6})
            return Decision(reason="more", cores=6)

    run = Controller(Follows([]), bounds=BOUNDS, limits=Limits(t_ra_s=60.0))
    assert run.tick(measured(0, cores=2)).acted
    waiting = dataclasses.replace(measured(1, cores=2), cores_asked=6)
    assert not run.tick(waiting).acted
    assert run.tick(dataclasses.replace(waiting, at_s=waiting.at_s + 1, cores_granted=6)).acted


def test_a_replay_decides_the_same_to_the_last_bit() -> None:
    profile = steps([(0, 1000.0), (8, 4000.0), (20, 1000.0)])
    outcome = simulate(world(profile, seconds=40.0, poisson=True), controller())
    lines = [record.to_json() for record in outcome.records]
    again = [Record.from_json(line) for line in lines]
    assert replay(again, controller()) == [record.decision for record in outcome.records]
    assert any(record.acted for record in outcome.records)
    other = replay(again, controller(0.9))
    assert other != [record.decision for record in outcome.records]


def test_moves_that_leave_their_node_are_said() -> None:
    reasons = []
    for nodes in ((), ("a", "a"), ("a", "b")):
        tick = measured(0, cores=2)
        uneven = dataclasses.replace(
            tick.operators[0], route=(0, 0, 0, 1), shard_rows=(30, 30, 30, 10), nodes=nodes
        )
        run = Controller(Wishes([None]), bounds=BOUNDS, balancer=Balancer(every_batches=1))
        record = run.tick(dataclasses.replace(tick, operators=(uneven,)))
        assert len(record.decision.moves["work"]) == 1
        reasons.append(record.decision.reason)
    assert reasons[0] == reasons[1] and "node" not in reasons[0]
    assert (
        "moving 1 shard of 'work', 1 to another node: its fullest task then has 20 % more than the"
        " mean instead of 80 %" in reasons[2]
    )


@pytest.mark.parametrize("policy", ["latency", "drs", "drs-fixed", "flow", "threshold", "static"])
@pytest.mark.parametrize("shed", [None, "model"])
def test_a_controller_whose_recall_fails_decides_like_a_new_one(
    policy: str, shed: str | None
) -> None:
    assembly = Assembly(target=Target(1.5), bounds=BOUNDS, policy=policy, shed=shed)
    first = new_controller(assembly)
    simulate(world(seconds=40.0), first)
    learned = json.loads(json.dumps(first.learned()))
    learned["model"]["kept_share"] = None  # read last of the model
    fresh, after = new_controller(assembly), new_controller(assembly)
    with pytest.raises(ValueError, match="not a number"):
        after.recall(learned, learned["at_s"] + 5.0)
    assert after.began_with is None
    expected, found = (simulate(world(seconds=40.0), one).records for one in (fresh, after))
    assert [one.to_json() for one in found] == [one.to_json() for one in expected]


def test_another_version_is_refused_in_words() -> None:
    refused = controller().recall({"version": 99}, 0.0)
    assert refused is not None and "version 99" in refused
