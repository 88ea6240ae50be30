"""Shedding in the control loop: last, only what is missing, and over when the cores have come."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.deciding import shedding_policy
from tests.helpers.pipeline_worlds import BOUNDS, MEASURED, measured, world
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.controller import Controller
from tidegate.control.decision import Decision, hold
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.learning.shed_row_cost import ShedRowCost
from tidegate.control.limits import Limits
from tidegate.control.measurement import BatchMeasurement, Measurement
from tidegate.control.names import PIPELINE_POLICIES
from tidegate.control.replay import replay
from tidegate.control.row_counts import ClassCount, SourceCount
from tidegate.control.shedding.feedback_shedder import FeedbackSteps
from tidegate.control.shedding.keep import keep_over
from tidegate.control.shedding.model_shedder import ModelShedder
from tidegate.control.shedding.next_batch import NextBatchWatch, time_gathering_s
from tidegate.control.shedding.shedder import LEAST_KEEP, Look
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly
from tidegate.pipelines.shedding import ShedClass
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.sim.shedding.experiment import shed_world
from tidegate.sim.shedding.until_cores_come import TARGET_S, shed_until_cores
from tidegate.view.pages.svg import Line, Panel, write_svg
from tidegate.workload.profile import constant, steps


class Says:
    """An inner policy that says what it is told to."""

    name = "says"

    def __init__(self, decision: Decision | None = None) -> None:
        self.decision = decision or hold("nothing to do")
        self.seen: list[Measurement] = []

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        self.seen.append(measurement)
        return self.decision


def overloaded(tick: int, keep: float = 1.0, **changes: object) -> Measurement:
    """8 ms a row on two cores, 1,000 rows/s: four times what they can carry."""
    given = {"rate": 1000.0, "duration_s": 2.0, "rows": 480, "latency_s": 3.0, **changes}
    found = measured(tick, **given)  # type: ignore[arg-type]
    operator = dataclasses.replace(found.operators[0], rows=480, busy_s=3.84)
    return dataclasses.replace(found, keep=keep, operators=(operator,))


def test_cores_that_come_late_are_bridged_and_then_nothing_is_shed() -> None:
    with_it, without = shed_until_cores("model"), shed_until_cores(None)
    assert with_it.mean_latency_s < 1.1 * TARGET_S < without.mean_latency_s
    assert with_it.worst_latency_s < 1.3 * TARGET_S
    assert with_it.over_s <= 2.0
    reasons = [record.decision.reason for record in with_it.outcome.records]
    assert any("until" in reason and "more cores can be used" in reason for reason in reasons)
    assert with_it.outcome.records[-1].measurement.keep == 1.0
    assert with_it.outcome.cores[-1] == without.outcome.cores[-1]


def test_where_cores_come_at_once_nothing_is_shed() -> None:
    bounds = Bounds(1, 16)
    outcome = shed_world(world(seconds=80.0, poisson=True), "model", 1.5, bounds)
    assert outcome.shed <= 0.01 * outcome.rows
    plain = shed_world(world(seconds=80.0, poisson=True), None, 1.5, bounds)
    assert outcome.core_seconds == pytest.approx(plain.core_seconds, rel=0.1)


def test_where_the_maximum_is_reached_the_rest_is_shed_and_said() -> None:
    bounds = Bounds(1, 4)
    busy = world(constant(8000.0), seconds=60.0, poisson=True)
    outcome = shed_world(busy, "model", 2.0, bounds)
    late = [latency.mean_s for latency in outcome.sojourns[30:] if latency is not None]
    assert sum(late) / len(late) == pytest.approx(2.0, rel=0.1)
    assert any(
        "keep" in record.decision.reason and "4 of 4 cores can process" in record.decision.reason
        for record in outcome.records
    )
    arrived = sum(record.measurement.arrival_rate for record in outcome.records)
    left = outcome.records[-1].measurement.backlog_rows
    assert outcome.rows + outcome.shed + left == pytest.approx(arrived)


def test_segments_behind_count_too() -> None:
    first = SimulatedSegment(name="a", fixed_s=0.1, stages=(Stage(name="one", work_s=1e-4),))
    second = SimulatedSegment(
        name="b", fixed_s=0.1, stages=(Stage(name="two", work_s=1e-3),), after="a"
    )
    both = World(
        segments=(first, second), profile=constant(4000.0), seconds=60.0, cores=4, poisson=True
    )
    outcome = shed_world(both, "model", 3.0, Bounds(4, 4), policy="static")
    assert outcome.shed > 0.0
    ends = [one.mean_s for one in outcome.sojourns[-20:] if one is not None]
    unshed = shed_world(both, None, 3.0, Bounds(4, 4), policy="static")
    grown = [one.mean_s for one in unshed.sojourns[-20:] if one is not None]
    assert max(ends) < 0.5 * max(grown)


@pytest.mark.parametrize("name", PIPELINE_POLICIES)
def test_it_goes_around_any_policy_and_replays(name: str) -> None:
    def controller() -> Controller:
        assembly = Assembly(
            target=Target(1.5), bounds=BOUNDS, policy=name, shed="model", capacity=MEASURED
        )
        made = new_controller(assembly)
        assert made.policy.name == name
        return made

    surge = world(steps([(0, 1000.0), (10, 30_000.0)]), seconds=25.0)
    outcome = simulate(surge, controller())
    assert outcome.shed > 0.0
    again = replay(outcome.records, controller())
    assert again == [record.decision for record in outcome.records]


def test_the_inner_policy_does_not_learn_from_a_latency_that_shedding_made() -> None:
    inner = Says()
    policy = shedding_policy(inner, target_s=2.0, bounds=Bounds(1, 2))
    policy.decide(overloaded(1))
    policy.decide(overloaded(2, keep=0.5))
    assert inner.seen[0].latency is not None and inner.seen[1].latency is None
    assert inner.seen[1].arrival_rate == 1000.0


def test_what_to_keep_is_not_held_back_with_the_cores() -> None:
    inner = Says(Decision(reason="more", cores=12))
    policy = shedding_policy(
        inner, target_s=2.0, bounds=BOUNDS, options=LatencyOptions(assumed_grant_s=60.0)
    )
    controller = Controller(
        policy.policy, bounds=BOUNDS, limits=Limits(t_ra_s=1000.0), learner=policy.model
    )
    first = controller.tick(overloaded(1))
    assert first.decision.cores == 12 and first.acted
    second = controller.tick(overloaded(2))
    assert second.acted and second.decision.cores is None and second.decision.keep is not None
    assert any("between_changes" in note for note in second.decision.notes)
    policy = shedding_policy(Says(), target_s=2.0, bounds=BOUNDS)
    dry = Controller(
        policy.policy, bounds=BOUNDS, limits=Limits(dry_run=True), learner=policy.model
    )
    dry.tick(overloaded(1))
    shown = dry.tick(overloaded(2))
    assert shown.decision.keep is not None and shown.held_back == "dry run" and not shown.acted


def test_a_wish_that_was_not_followed_is_not_believed_again() -> None:
    inner = Says()
    policy = shedding_policy(inner, target_s=2.0, bounds=BOUNDS)
    policy.decide(overloaded(1))
    short = policy.decide(overloaded(2)).keep
    inner.decision = Decision(reason="more", cores=12, tasks={"work": 12})
    wished = policy.decide(overloaded(3)).keep
    held_back = policy.decide(overloaded(4)).keep
    assert short is not None and wished is not None and held_back is not None
    assert wished > 3.0 * held_back
    assert held_back == pytest.approx(short, rel=0.3)


def test_tasks_of_an_operator_that_runs_where_its_rows_are_do_not_count() -> None:
    """Such an operator has the tasks that told of themselves: four in one tick, one in another."""
    kept = []
    for tasks in (1, 4):
        policy = shedding_policy(Says(), target_s=2.0, bounds=BOUNDS)
        for tick in range(1, 4):
            now = overloaded(tick)
            fixed = dataclasses.replace(
                now.operators[0], name="ask", tasks=tasks, least_tasks=tasks, most_tasks=tasks
            )
            now = dataclasses.replace(now, operators=(*now.operators, fixed))
            kept.append((tick, policy.decide(now).keep))
    assert kept[:3] == kept[3:]
    assert kept[-1][1] is not None


def test_feedback_goes_by_the_newest_batches_and_not_by_a_window() -> None:
    """A window that still shows 9 s is no reason to keep less, when the batches are on target."""

    def aim_after(newest_s: float | None) -> float:
        policy = shedding_policy(Says(), target_s=2.0, bounds=BOUNDS)
        for tick in range(1, 12):
            now = overloaded(tick, keep=1.0 if tick < 3 else 0.3, latency_s=9.0, duration_s=1.0)
            segment = now.segments[0]
            batch = dataclasses.replace(segment.batches[0], latency_s=newest_s)
            segment = dataclasses.replace(segment, batches=(batch,))
            policy.decide(dataclasses.replace(now, segments=(segment,)))
        assert isinstance(policy.shedder, ModelShedder)
        return policy.shedder.aim_s

    assert aim_after(None) < 1.8
    assert aim_after(2.0) == pytest.approx(2.0)


def test_rows_that_waited_before_shedding_began_are_not_blamed_on_it() -> None:
    steps = FeedbackSteps()
    early = Look(
        at_s=5.0,
        outlook=None,
        latency_s=4.0,
        delay_s=1.0,
        waits_since_s=1.5,  # type: ignore[arg-type]
    )
    assert steps.delay_steps(early, since_s=2.0) is None
    later = dataclasses.replace(early, at_s=6.0, waits_since_s=3.0)
    assert steps.delay_steps(later, since_s=2.0) is not None


def test_a_target_below_the_floor_is_said_and_does_not_shed_everything() -> None:
    busy = world(constant(9000.0), seconds=40.0)
    outcome = shed_world(busy, "model", 0.2, Bounds(4, 4))
    notes = [note for record in outcome.records for note in record.decision.notes]
    assert any("shedding cannot reach it" in note for note in notes)
    assert outcome.rows > 0.2 * (outcome.rows + outcome.shed)


def test_classes_are_shed_by_their_worth() -> None:
    classes = {"gold": ShedClass(priority=1), "rest": ShedClass()}
    policy = shedding_policy(Says(), target_s=2.0, bounds=Bounds(1, 2), classes=classes)
    counts = (
        ClassCount(name="gold", offered=100, kept=100),
        ClassCount(name="rest", offered=900, kept=900),
    )
    source = SourceCount(name="rows", offered=1000, kept=1000, classes=counts)
    policy.decide(overloaded(1))
    decision = policy.decide(dataclasses.replace(overloaded(2), sources=(source,)))
    assert decision.keep is not None and decision.keep < 0.1
    gold = decision.keep / 0.1
    assert decision.keep_by_class == pytest.approx({"gold": gold, "rest": 0.0})
    promised = {"gold": ShedClass(priority=1), "rest": ShedClass(floor=0.5)}
    bound = shedding_policy(Says(), target_s=2.0, bounds=Bounds(1, 2), classes=promised)
    bound.decide(overloaded(1))
    kept = bound.decide(dataclasses.replace(overloaded(2), sources=(source,)))
    assert kept.keep_by_class["rest"] == 0.5
    assert any("promised (floors) keeps" in note for note in kept.notes)
    with pytest.raises(AskedWrongly, match="class 'gold' has the floor 2"):
        shedding_policy(Says(), target_s=2.0, bounds=BOUNDS, classes={"gold": ShedClass(floor=2.0)})


def test_percentile_targets_are_held() -> None:
    busy = world(constant(9000.0), seconds=60.0, cores=4, poisson=True)
    outcome = shed_world(busy, "model", 2.0, Bounds(4, 4), policy="static", percentile=95)
    tails = [latency.p95_s for latency in outcome.sojourns[25:] if latency is not None]
    assert sum(tails) / len(tails) == pytest.approx(2.0, rel=0.12)


def test_the_next_round_finds_what_came_since_the_last_began() -> None:
    watch = NextBatchWatch()
    tick = measured(1, rate=1000.0, duration_s=0.5)
    assert watch.next_batch(tick, lambda kept, shed: 1.0) is None
    watch.observe(tick)
    later = measured(2, rate=3000.0, batches=False)
    watch.observe(later)
    found = watch.next_batch(later, lambda kept, shed: 1.5)
    assert found is not None
    assert found.begins_s == pytest.approx(tick.at_s + 1.5)
    assert found.offered_rows == pytest.approx(3000.0 + 1500.0)


def test_between_two_batches_the_next_round_is_the_one_that_waits() -> None:
    """What is decided holds for it; and the keep in force when it began is counted for it."""
    watch = NextBatchWatch()
    before = measured(1, rate=1000.0, batches=False)
    tick = measured(2, rate=1000.0, duration_s=1.5)
    waits = dataclasses.replace(tick.segments[0], between=True)
    tick = dataclasses.replace(tick, segments=(waits, *tick.segments[1:]))
    watch.observe(before)
    watch.observe(tick)
    found = watch.next_batch(tick, lambda kept, shed: 60.0)
    assert found is not None
    assert found.begins_s == tick.at_s
    assert found.offered_rows == pytest.approx(1500.0)
    assert found.span_s == pytest.approx(1.5)
    surge = dataclasses.replace(waits, backlog_rows=9000.0)
    known = watch.next_batch(dataclasses.replace(tick, segments=(surge,)), lambda kept, shed: 1.0)
    assert known is not None
    assert known.offered_rows == 9000.0, "the ticks' rates knew nothing of it yet"
    later = dataclasses.replace(measured(3, rate=1000.0, batches=False), keep=0.25)
    watch.observe(later)
    seen: list[tuple[float, float]] = []
    watch.next_batch(later, lambda kept, shed: seen.append((kept, shed)) or 1.0)
    assert seen == [pytest.approx((375.0, 1125.0))]


@given(st.floats(0.1, 1.0), st.floats(0.1, 5.0), st.floats(0.1, 5.0), st.floats(1.0, 1e4))
def test_a_batch_that_gathers_longer_keeps_as_many_rows(
    keep: float, span_s: float, gathered_s: float, rate: float
) -> None:
    share = keep_over(keep, span_s, gathered_s)
    if keep == 1.0:
        assert share == 1.0
    else:
        meant, offered = keep * rate * span_s, rate * gathered_s
        assert share * offered == pytest.approx(min(meant, offered))
    assert keep_over(keep, span_s, 1e6) == pytest.approx(1.0 if keep == 1.0 else LEAST_KEEP)
    assert time_gathering_s(10.0, 11.0, 11.1) == pytest.approx(1.1)
    assert time_gathering_s(10.0, 11.0, 600.0) == 0.0, "a silent source has gathered nothing"
    assert keep_over(keep, None, gathered_s) == keep


def test_batches_that_are_held_up_do_not_hold_up_those_behind_them() -> None:
    """Batches of uneven length, three in a hundred of them odd: the mean is held all the same."""
    segment = SimulatedSegment(fixed_s=0.2, stages=(Stage(name="work", work_s=8e-3),))
    scene = World(
        segments=(segment,),
        profile=constant(1000.0),
        seconds=240.0,
        cores=4,
        tick_s=0.5,
        noise=0.15,
        odd_batches=0.03,
    )
    held = shed_world(scene, "model", 1.0, Bounds(4, 4))
    late = [latency.mean_s for latency in held.sojourns[40:] if latency is not None]
    assert sum(late) / len(late) == pytest.approx(1.0, rel=0.1)
    shed = [r.decision for r in held.records if (r.decision.keep or 1.0) < 1.0]
    assert len(shed) > 100 and all(one.keep_span_s is not None for one in shed)


def test_what_a_shed_row_costs_is_learned() -> None:
    cost = ShedRowCost()
    for number in range(120):
        rows, shed = 1000 + 37 * (number % 7), 2000 * (number % 5)
        duration_s = 0.2 + rows * 1e-3 / 4 + shed * 3e-5 / 4
        cost.learn(
            BatchMeasurement(
                batch_id=number,
                rows=rows,
                tasks=4,
                imbalance=1.0,
                duration_s=duration_s,
                ended_s=float(number),
                shed_rows=shed,
            )
        )
    assert cost.row_s == pytest.approx(3e-5, rel=0.1)


def test_a_picture_is_small_and_whole(tmp_path: Path) -> None:
    line = Line(name="a & b", at_s=list(range(5000)), values=[float(n % 9) for n in range(5000)])
    write_svg([Panel(title="x < y", lines=[line], most=8.0, mark=4.0)], tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    assert text.startswith("<svg") and text.endswith("</svg>\n") and len(text) < 40_000
    assert "a &amp; b" in text and "x &lt; y" in text
