"""DRS's two schedulers on measured operators."""

import dataclasses

import pytest

from tests.helpers.deciding import plain
from tidegate.control.allocation.drs import Drs, DrsFixed
from tidegate.control.bounds import Bounds
from tidegate.control.drs_options import DrsOptions
from tidegate.control.measurement import (
    BatchMeasurement,
    Latency,
    Measurement,
    OperatorMeasurement,
    SegmentMeasurement,
)
from tidegate.control.policy import Policy
from tidegate.errors import AskedWrongly
from tidegate.models.queueing.stations import Queues

BOUNDS = Bounds(1, 40)


def measured(
    tasks: tuple[int, ...] = (10, 11, 1),
    *,
    latency_s: float | None = 1.0,
    rate: float = 13.0,
    scv: float = 1.0,
) -> Measurement:
    """DRS's video logo detection: 13 frames a second through three operators (V-B)."""
    operators = tuple(
        OperatorMeasurement(
            name=name,
            arrival_rate=rate,
            service_rate=served,
            tasks=count,
            arrival_scv=scv,
            service_scv=scv,
        )
        for name, served, count in zip(
            ("extract", "match", "aggregate"), (1.6, 1.45, 40.0), tasks, strict=True
        )
    )
    latency = latency_s and Latency(
        mean_s=latency_s, p50_s=latency_s, p95_s=latency_s, p99_s=latency_s
    )
    return Measurement(
        at_s=100.0,
        interval_s=1.0,
        arrival_rate=rate,
        processed_rate=rate,
        backlog_rows=rate,
        cores_asked=sum(tasks),
        cores_granted=sum(tasks),
        saturated=False,
        latency=latency or None,
        operators=operators,
    )


def test_fixed_finds_the_papers_split_and_then_holds() -> None:
    decision = settled(DrsFixed(22), measured((8, 12, 2)))
    assert decision.tasks == {"extract": 10, "match": 11, "aggregate": 1}
    assert decision.cores is None, "22 are asked for already"
    queues = Queues.of([13.0] * 3, [1.6, 1.45, 40.0])
    assert decision.expected_latency_s == pytest.approx(float(queues.network_latency([10, 11, 1])))
    assert settled(DrsFixed(22), measured()).holds


def test_fixed_with_too_few_cores_says_so_and_does_its_best() -> None:
    decision = settled(DrsFixed(12), measured((4, 4, 4)))
    assert sum({"extract": 4, "match": 4, "aggregate": 4, **decision.tasks}.values()) == 12
    assert any("at least" in note for note in decision.notes)


def settled(policy: Policy, measurement: Measurement, ticks: int = 8) -> object:
    for _ in range(ticks):
        decision = plain(policy, BOUNDS).decide(measurement)
    return decision


def test_above_t_max_it_asks_for_what_algorithm_2_says() -> None:
    queues = Queues.of([13.0] * 3, [1.6, 1.45, 40.0])
    have = (9, 10, 1)
    slow = float(queues.network_latency(have))
    decision = settled(Drs(1.6, 0.5), measured(have, latency_s=slow))
    assert slow > 1.6
    chosen = {"extract": 9, "match": 10, "aggregate": 1, **decision.tasks}
    assert decision.cores == sum(chosen.values()) > 20
    assert float(queues.network_latency(list(chosen.values()))) <= 1.6


def test_below_t_min_it_lets_go_and_keeps_t_max() -> None:
    queues = Queues.of([13.0] * 3, [1.6, 1.45, 40.0])
    have = (18, 18, 3)
    fast = float(queues.network_latency(have))
    decision = settled(Drs(2.0, 1.5), measured(have, latency_s=fast))
    assert decision.cores is not None and decision.cores < 39
    chosen = {"extract": 18, "match": 18, "aggregate": 3, **decision.tasks}
    assert float(queues.network_latency(list(chosen.values()))) <= 2.0


def test_in_between_it_only_splits_anew() -> None:
    decision = settled(Drs(5.0, 0.5), measured((9, 12, 1), latency_s=2.0))
    assert decision.cores is None
    assert decision.tasks == {"extract": 10, "match": 11}
    assert settled(Drs(5.0, 0.5), measured((10, 11, 1), latency_s=2.0)).holds


def test_what_the_model_does_not_see_is_taken_off_the_target() -> None:
    queues = Queues.of([13.0] * 3, [1.6, 1.45, 40.0])
    have = (12, 13, 2)
    modelled = float(queues.network_latency(have))
    policy = Drs(modelled + 0.3, 0.5)
    decision = settled(policy, measured(have, latency_s=modelled + 0.4))
    assert policy.beliefs["unseen_s"] == pytest.approx(0.4)
    assert decision.cores is not None and decision.cores > 27
    floor = settled(Drs(1.0, 0.5), measured(have, latency_s=1.9))
    assert any("below the lowest possible latency" in note for note in floor.notes)


def test_variability_matters_with_gigk_only() -> None:
    wild = measured((9, 10, 1), latency_s=3.0, scv=4.0)
    calm = settled(Drs(2.5, 0.5), wild)
    aware = settled(Drs(2.5, 0.5, DrsOptions(model="gigk")), wild)
    assert aware.cores != calm.cores


def test_nothing_is_decided_on_nothing() -> None:
    assert plain(Drs(1.0, 0.5), BOUNDS).decide(measured(latency_s=None)).holds
    idle = measured()
    unseen = tuple(dataclasses.replace(op, service_rate=0.0) for op in idle.operators)
    assert plain(DrsFixed(22), BOUNDS).decide(dataclasses.replace(idle, operators=unseen)).holds
    with pytest.raises(AskedWrongly, match="T_min below T_max"):
        Drs(1.0, 1.0)
    with pytest.raises(AskedWrongly, match="at least 1 core"):
        DrsFixed(0)


def test_a_split_that_differs_is_enough_unless_it_has_to_be_better() -> None:
    """24 cores: one that goes from extract to match lowers the latency by less than 5 %."""
    near = measured((12, 11, 1), latency_s=2.0)
    as_in_the_paper = settled(Drs(2.5, 0.5), near)
    assert as_in_the_paper.tasks == {"extract": 11, "match": 12}
    assert settled(Drs(2.5, 0.5, DrsOptions(resplit="better")), near).holds


def test_smoothing_by_a_window_or_by_alpha() -> None:
    def rates(options: DrsOptions) -> float:
        policy = plain(Drs(1.5, 0.01, options), BOUNDS)
        for rate in [13.0] * 12 + [16.0] * 2:
            decision = policy.decide(measured((9, 10, 1), latency_s=2.0, rate=rate))
        return decision.cores or 0

    assert rates(DrsOptions(w=6)) < rates(DrsOptions(w=1))
    assert rates(DrsOptions(alpha=0.0)) == rates(DrsOptions(w=1))
    assert rates(DrsOptions(alpha=0.9)) < rates(DrsOptions(alpha=0.0))


def test_a_tick_without_a_batch_does_not_interrupt_it() -> None:
    policy = plain(DrsFixed(22), BOUNDS)
    for _ in range(6):
        policy.decide(measured((10, 11, 1)))
    quiet = measured((8, 12, 2))
    quiet = dataclasses.replace(
        quiet,
        operators=tuple(dataclasses.replace(one, service_rate=0.0) for one in quiet.operators),
    )
    assert policy.decide(quiet).tasks == {"extract": 10, "match": 11, "aggregate": 1}


def test_ticks_before_the_first_batch_do_not_weigh_in_the_rates() -> None:
    """The second operator's rows come late: zeros in its mean would take cores from it."""
    policy = plain(DrsFixed(22), BOUNDS)
    first = measured((10, 11, 1))
    unknown = dataclasses.replace(first.operators[1], arrival_rate=0.0, service_rate=0.0)
    for _ in range(4):
        waiting = dataclasses.replace(
            first, operators=(first.operators[0], unknown, first.operators[2])
        )
        assert policy.decide(waiting).holds
    decisions = [policy.decide(first) for _ in range(8)]
    assert all(one.holds for one in decisions), "10:11:1 is the best split from the first on"
    assert "best split" in decisions[-1].reason


def test_it_waits_until_its_window_is_full() -> None:
    policy = plain(DrsFixed(22, DrsOptions(w=4)), BOUNDS)
    decisions = [policy.decide(measured((8, 12, 2))) for _ in range(5)]
    assert [one.holds for one in decisions] == [True, True, True, False, False]


def with_alerts(tick: int, rate: float, have: tuple[int, ...], *, served: float) -> Measurement:
    """The three operators and a branch for alerts."""
    one = measured(have, latency_s=3.0)
    alerts = OperatorMeasurement(
        name="alerts", arrival_rate=rate, service_rate=served, tasks=2, least_tasks=2
    )
    return dataclasses.replace(
        one, at_s=100.0 + tick, operators=(*one.operators, alerts), cores_asked=sum(have) + 2
    )


@pytest.mark.parametrize("heard", [0, 8])
def test_an_operator_without_rows_does_not_block_the_others(heard: int) -> None:
    """It never got any, or has been silent for longer than the window."""
    policy = plain(Drs(1.6, 0.5), BOUNDS)
    for tick in range(heard + 14):
        rate = 2.0 if tick < heard else 0.0
        decision = policy.decide(with_alerts(tick, rate, (9, 10, 1), served=rate * 5.0))
    assert decision.cores is not None and decision.cores > 22
    assert "alerts" not in decision.tasks, "it keeps its least tasks"
    assert decision.expected_latency_s is not None and decision.expected_latency_s < 3.0


def test_an_operator_that_waits_for_its_first_batch_is_awaited() -> None:
    """It has rows already, but how long they take is not known."""
    policy = plain(Drs(1.6, 0.5), BOUNDS)
    for tick in range(20):
        decision = policy.decide(with_alerts(tick, 2.0, (9, 10, 1), served=0.0))
    assert decision.holds
    for tick in range(20, 28):
        decision = policy.decide(with_alerts(tick, 2.0, (9, 10, 1), served=10.0))
    assert decision.cores is not None


def test_a_chain_that_fills_slowly_is_awaited() -> None:
    """The batches before it take 5 s each, so it is no wonder that it has no rows yet."""
    batch = BatchMeasurement(
        batch_id=1, rows=50, tasks=2, imbalance=1.0, duration_s=5.0, ended_s=100.0
    )
    segment = SegmentMeasurement(
        name="main", arrival_rate=13.0, backlog_rows=0.0, tasks=2, batches=(batch,)
    )
    policy = plain(Drs(1.6, 0.5), BOUNDS)
    holds = []
    for tick in range(20):
        one = with_alerts(tick, 0.0, (9, 10, 1), served=0.0)
        holds.append(policy.decide(dataclasses.replace(one, segments=(segment,))).holds)
    assert all(holds[:14]) and not holds[-1]
