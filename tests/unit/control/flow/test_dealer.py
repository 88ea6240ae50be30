"""Tasks are kept on their executors where these differ in speed, and rows follow the speeds."""

import dataclasses

import pytest

from tests.helpers.deciding import plain
from tests.helpers.pipeline_worlds import measured
from tests.helpers.synthetic_surge import record
from tests.unit.control.flow.test_bottleneck import operator, tick
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.decision import Decision, deal_words
from tidegate.control.flow.dealer import Dealer
from tidegate.control.flow.policy import FlowPolicy
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.models.flow.deal import slot_route
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.view.changes import words_of
from tidegate.workload.profile import constant

FAST_AND_SLOW = (1000.0, 1000.0, 500.0)


def map_of(rates: tuple[float, ...], shares: tuple[float, ...] = (), **changes: object) -> object:
    route = slot_route(shares, 96) if shares else ()
    told = {"tasks": 3, "task_rates": rates, "route": route, "dealt": bool(route), **changes}
    return operator("parse", 0.001, **told)


def deals(dealer: Dealer, one: object, ticks: int) -> list[dict[str, tuple[float, ...]]]:
    return [dealer.deals(tick(one, number=number)) for number in range(ticks)]


def test_places_are_kept_first_and_then_rows_follow_the_speeds() -> None:
    dealer = Dealer()
    told = deals(dealer, map_of(FAST_AND_SLOW), 4)
    even = (1 / 3, 1 / 3, 1 / 3)
    assert told[:2] == [{}, {}] and told[2] == {"parse": even} and told[3] == {}
    (first,) = deals(dealer, map_of(FAST_AND_SLOW, even), 1)
    assert first == {"parse": (0.4, 0.4, 0.2)}
    assert deals(dealer, map_of(FAST_AND_SLOW, first["parse"]), 40) == [{}] * 40
    (again,) = deals(dealer, map_of((1000.0, 1000.0, 1000.0), first["parse"]), 1)
    assert again["parse"] == pytest.approx(even, abs=1e-3), "the slow one has become faster"


def test_executors_that_are_alike_need_no_places() -> None:
    dealer = Dealer()
    assert deals(dealer, map_of((1000.0, 950.0, 900.0)), 20) == [{}] * 20
    assert deals(dealer, map_of(()), 20) == [{}] * 20, "one executor runs all"
    now_and_then = [map_of(FAST_AND_SLOW), map_of(FAST_AND_SLOW), map_of((1.0, 1.0, 1.0))] * 5
    assert not any(dealer.deals(tick(one)) for one in now_and_then)
    kept = deals(dealer, map_of((1000.0, 1000.0, 990.0), (1 / 3, 1 / 3, 1 / 3)), 30)
    assert kept[:29] == [{}] * 29 and kept[29] == {"parse": ()}, "they are let go"


def test_tasks_that_no_other_executor_can_run_are_let_go() -> None:
    """All executors but one are gone, or one task is left: no speeds differ any more."""
    for alone in (map_of((), (0.4, 0.4, 0.2)), map_of((), (1.0,), tasks=1)):
        dealer = Dealer()
        told = deals(dealer, alone, 30)
        assert told[:29] == [{}] * 29 and told[29] == {"parse": ()}
    dealer = Dealer()
    deals(dealer, map_of((), (0.4, 0.4, 0.2)), 29)
    assert deals(dealer, map_of(FAST_AND_SLOW, (0.4, 0.4, 0.2)), 1) == [{}], "it has come back"
    assert deals(dealer, map_of((), (0.4, 0.4, 0.2)), 29) == [{}] * 29


def test_the_shards_of_a_keyed_operator_are_not_dealt() -> None:
    keyed = map_of((), (0.4, 0.4, 0.2), dealt=False, shard_rows=(5,) * 96)
    assert deals(Dealer(), keyed, 40) == [{}] * 40


def test_nothing_is_dealt_on_old_numbers() -> None:
    dealer = Dealer()
    silent = map_of(FAST_AND_SLOW, rows=0)
    assert deals(dealer, silent, 9) == [{}] * 9
    fewer = map_of(FAST_AND_SLOW[:2])
    assert deals(dealer, fewer, 9) == [{}] * 9, "tasks have changed meanwhile"


def test_a_deal_is_part_of_a_decision_and_its_record() -> None:
    shares = (0.4, 0.4, 0.2)
    decision = Decision(reason="uneven", deal={"parse": shares})
    assert not decision.holds
    one = dataclasses.replace(record(0), decision=decision, acted=True)
    assert Record.from_json(one.to_json()) == one
    older = one.to_json().replace(',"deal":{"parse":[0.4,0.4,0.2]}', "")
    assert Record.from_json(older).decision.deal == {}
    assert words_of(one) == "deal the rows of parse 40 % : 40 % : 20 %"
    assert deal_words(()) == "in turn"


def test_the_policy_says_what_it_deals() -> None:
    policy = plain(FlowPolicy(2.0), Bounds(1, 8))
    base = measured(1, rate=100.0, cores=3, rows=100, latency_s=0.5, backlog=0.0)
    decision = None
    for number in range(4):
        one = dataclasses.replace(base, at_s=base.at_s + number, operators=(map_of(FAST_AND_SLOW),))
        decision = policy.decide(one)
        if decision.deal:
            break
    assert decision is not None and decision.cores is None and not decision.tasks
    assert decision.reason.endswith("; dealing the rows of `parse` 33 % : 33 % : 33 %")


def test_a_slow_executor_no_longer_holds_the_others_up() -> None:
    """Four tasks, one of them on an executor a third as fast: 3.33 tasks' worth instead of 1.33."""
    stage = Stage(name="parse", work_s=1e-3, speeds=(1.0, 1.0, 1.0, 1 / 3), most_tasks=4)
    segment = SimulatedSegment(fixed_s=0.1, stages=(stage,))
    world = World(segments=(segment,), profile=constant(2500.0), seconds=60.0, cores=4, noise=0.02)
    outcomes = {}
    for name in ("flow", "static"):
        assembly = Assembly(target=Target(2.0), bounds=Bounds(4, 4), policy=name)
        outcomes[name] = simulate(world, new_controller(assembly))
    flow, static = outcomes["flow"], outcomes["static"]
    dealt = [r.decision.deal["parse"] for r in flow.records if r.acted and r.decision.deal]
    assert dealt[0] == (0.25, 0.25, 0.25, 0.25)
    assert dealt[-1] == pytest.approx((0.3, 0.3, 0.3, 0.1), abs=0.01)
    last = flow.records[-1].measurement
    assert last.latency is not None and last.latency.mean_s < 2.0
    assert flow.rows >= 1.5 * static.rows
    assert last.operators[0].imbalance == pytest.approx(1.0, abs=0.05)


def test_no_cores_are_asked_for_where_a_better_deal_is_enough() -> None:
    """Two fast tasks and their slow neighbours are enough; with the old deal they look full."""
    stage = Stage(name="match", work_s=4e-3, speeds=(1.0, 1.0, 0.4))
    segment = SimulatedSegment(fixed_s=0.1, stages=(stage,))
    world = World(segments=(segment,), profile=constant(500.0), seconds=90.0, cores=4, noise=0.02)
    flow = Assembly(target=Target(2.0), bounds=Bounds(1, 12), policy="flow")
    outcome = simulate(world, new_controller(flow))
    dealing = [one.decision for one in outcome.records if one.decision.deal]
    assert dealing and all(one.cores is None and not one.tasks for one in dealing)
    assert max(outcome.cores) <= 5
