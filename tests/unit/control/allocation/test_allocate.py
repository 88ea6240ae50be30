"""The allocator against brute force, its two paths against each other, and what it refuses."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.allocation.allocate import (
    LatencyOutOfReach,
    StationTooSmall,
    TooFewCores,
    assign,
    provision,
)
from tidegate.control.allocation.stations import Station
from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.microbatch.station import MicroBatchStation
from tidegate.models.queueing.mixed_cores import CoreClass, MixedCoreStation
from tidegate.models.queueing.stations import Queues, QueueStation

CASES = settings(max_examples=80, deadline=None)

mmk = st.builds(
    QueueStation,
    arrival_rate=st.floats(0.01, 50.0),
    service_rate=st.floats(10.0, 40.0),
    visit_ratio=st.floats(0.1, 5.0),
)
gigk = st.builds(
    QueueStation,
    arrival_rate=st.floats(0.01, 50.0),
    service_rate=st.floats(10.0, 40.0),
    variability=st.floats(0.05, 8.0),
    visit_ratio=st.floats(0.1, 5.0),
)
microbatch = st.builds(
    MicroBatchStation,
    cost=st.builds(
        BatchCost,
        fixed_s=st.floats(0.001, 2.0),
        per_task_s=st.sampled_from([0.0, 0.0, 1e-3, 0.01, 0.2]),
        work_s=st.floats(1e-4, 0.02),
        least_s=st.sampled_from([0.0, 0.0, 0.02, 0.3, 1.5]),
        rowless_s=st.sampled_from([0.0, 0.0, 0.05, 6.0]),
    ),
    arrival_rate=st.floats(1.0, 200.0),
    imbalance=st.floats(1.0, 1.5),
    interval_s=st.sampled_from([0.0, 0.0, 0.5, 3.0]),
    visit_ratio=st.floats(0.1, 5.0),
)
any_station = st.one_of(mmk, gigk, microbatch)


@dataclass
class Opaque:
    """A station that tells its latency and hides its kind, so that no compiled form applies."""

    inner: Station

    @property
    def stable_from(self) -> int:
        return self.inner.stable_from

    @property
    def visit_ratio(self) -> float:
        return self.inner.visit_ratio

    def latency(self, cores: int, /) -> float:
        return self.inner.latency(cores)


def latency(stations: list[Station], cores: tuple[int, ...]) -> float:
    return math.fsum(s.visit_ratio * s.latency(k) for s, k in zip(stations, cores, strict=True))


def brute_force(stations: list[Station], spare: int) -> list[float]:
    """The lowest latency with 0, 1, ... `spare` cores beyond the fewest, by trying all."""
    parts = [
        [s.visit_ratio * s.latency(s.stable_from + extra) for extra in range(spare + 1)]
        for s in stations
    ]
    best = [math.inf] * (spare + 1)
    for extra in itertools.product(range(spare + 1), repeat=len(stations)):
        if sum(extra) <= spare:
            total_s = math.fsum(part[e] for part, e in zip(parts, extra, strict=True))
            best[sum(extra)] = min(best[sum(extra)], total_s)
    return list(itertools.accumulate(best, min))


def holds_against_brute_force(stations: list[Station], spare: int) -> None:
    fewest = sum(station.stable_from for station in stations)
    best = brute_force(stations, spare)
    for extra, expected in enumerate(best):
        answer = assign(stations, fewest + extra)
        assert answer.total == answer.cores.sum() <= fewest + extra
        assert answer.latency_s == pytest.approx(expected, rel=1e-12)
        assert latency(stations, tuple(answer.cores)) == pytest.approx(expected, rel=1e-12)


@CASES
@given(st.lists(mmk, min_size=1, max_size=3), st.integers(0, 5))
def test_assign_is_the_best_for_mmk(stations: list[Station], spare: int) -> None:
    holds_against_brute_force(stations, spare)


@CASES
@given(st.lists(gigk, min_size=1, max_size=3), st.integers(0, 5))
def test_assign_is_the_best_for_gigk(stations: list[Station], spare: int) -> None:
    holds_against_brute_force(stations, spare)


@CASES
@given(st.lists(microbatch, min_size=1, max_size=3), st.integers(0, 5))
def test_assign_is_the_best_for_micro_batches(stations: list[Station], spare: int) -> None:
    holds_against_brute_force(stations, spare)


@CASES
@given(microbatch, st.integers(0, 40))
def test_the_compiled_latency_of_a_micro_batch_is_its_own(
    station: MicroBatchStation, spare: int
) -> None:
    """Both at the cores of the allocation, and however many there are of them."""
    least = station.stable_from + spare
    answer = assign([station], least, least=[least])
    assert answer.cores.tolist() == [least]
    assert answer.latency_s == pytest.approx(
        station.visit_ratio * station.latency(least), rel=1e-12
    )


def test_work_beside_the_tasks_keeps_a_latency_up() -> None:
    """With L = 0.3 s a batch takes at least 0.4 s, so no number of cores reaches 0.3 s."""
    cost = BatchCost(fixed_s=0.1, work_s=1e-3, least_s=0.3)
    station = MicroBatchStation(cost=cost, arrival_rate=500.0)
    with pytest.raises(LatencyOutOfReach) as refused:
        provision([station], 0.3)
    assert refused.value.latency_reachable_s == pytest.approx(0.6)
    assert provision([station], 0.601).cores.tolist() == [1]


@CASES
@given(st.lists(any_station, min_size=1, max_size=4), st.integers(0, 12))
def test_stations_that_only_tell_their_latency_get_as_good_an_allocation(
    stations: list[Station], spare: int
) -> None:
    cores = sum(station.stable_from for station in stations) + spare
    known = assign(stations, cores)
    opaque = assign([Opaque(station) for station in stations], cores)
    assert opaque.latency_s == pytest.approx(known.latency_s, rel=1e-12)
    assert opaque.total == opaque.cores.sum() <= cores


@CASES
@given(
    st.lists(any_station, min_size=1, max_size=4),
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.integers(0, 300),
    st.integers(1, 8),
)
def test_both_paths_give_the_same_allocation_even_with_ties(
    kinds: list[Station], picks: list[int], spare: int, room: int
) -> None:
    stations = [kinds[pick % len(kinds)] for pick in picks]  # the same one again and again: ties
    fewest = [station.stable_from for station in stations]
    most = [count + room * (1 + index % 5) for index, count in enumerate(fewest)]
    for bounds in ({}, {"most": most}):
        exact = assign(stations, sum(fewest) + spare, path="exact", **bounds)
        fast = assign(stations, sum(fewest) + spare, path="fast", **bounds)
        assert exact.cores.tolist() == fast.cores.tolist()
        assert exact.latency_s == fast.latency_s
        target_s = 1.000001 * exact.latency_s
        exact = provision(stations, target_s, path="exact", **bounds)
        fast = provision(stations, target_s, path="fast", **bounds)
        assert exact.cores.tolist() == fast.cores.tolist()


def test_both_paths_agree_on_a_large_network() -> None:
    random = np.random.default_rng(3)
    service = random.choice([0.5, 1.0, 3.0, 40.0], 2_000)
    load = random.choice([0.3, 2.5, 17.0, 80.0], 2_000)
    queues = Queues.of(load * service, service, external_rate=1.0)
    cores = int(load.sum() * 1.2)
    exact = assign(queues, cores, path="exact")
    fast = assign(queues, cores, path="fast")
    assert np.array_equal(exact.cores, fast.cores)
    assert exact.latency_s == pytest.approx(float(queues.network_latency(exact.cores)), rel=1e-12)
    assert np.array_equal(provision(queues, exact.latency_s, path="fast").cores, exact.cores)


@CASES
@given(st.lists(any_station, min_size=1, max_size=4), st.floats(0.0, 1.0))
def test_provision_is_the_least(stations: list[Station], share: float) -> None:
    fewest = sum(station.stable_from for station in stations)
    worst_s = assign(stations, fewest).latency_s
    best_s = assign(stations, fewest + 40).latency_s
    target_s = best_s + share * (worst_s - best_s)
    answer = provision(stations, target_s)
    assert answer.latency_s <= target_s
    assert answer.latency_s == assign(stations, answer.total).latency_s
    if answer.total > fewest:
        assert assign(stations, answer.total - 1).latency_s > target_s


@CASES
@given(st.lists(any_station, min_size=1, max_size=3))
def test_what_is_named_as_reachable_is(stations: list[Station]) -> None:
    most = [station.stable_from + 20 for station in stations]
    with pytest.raises(LatencyOutOfReach) as refusal:
        provision(stations, 1e-9, most=most)
    reachable_s = refusal.value.latency_reachable_s
    assert provision(stations, reachable_s * (1 + 1e-12), most=most).latency_s == pytest.approx(
        reachable_s
    )
    with pytest.raises(LatencyOutOfReach):
        provision(stations, reachable_s * (1 - 1e-9), most=most)


@CASES
@given(any_station, st.integers(0, 50))
def test_latency_is_convex(station: Station, further: int) -> None:
    first = station.stable_from + further
    a, b, c = (station.latency(first + step) for step in range(3))
    assert a - b >= (b - c) - 1e-12 * a


@CASES
@given(st.one_of(mmk, gigk), st.integers(0, 50))
def test_queue_latency_never_rises(station: Station, further: int) -> None:
    first = station.stable_from + further
    assert station.latency(first) >= station.latency(first + 1)


@pytest.mark.parametrize(
    ("cores", "best"), [(22, [10, 11, 1]), (96, [44, 49, 3]), (192, [88, 97, 7])]
)
def test_the_network_of_table_2(cores: int, best: list[int]) -> None:
    rate = 13.0 * cores / 22.0
    assert assign(Queues.of([rate] * 3, [1.6, 1.45, 40.0]), cores).cores.tolist() == best


def test_algorithm_1_hands_out_no_more_than_there_are() -> None:
    queues = Queues.of([13.0] * 3, [1.6, 1.45, 40.0])
    for cores in range(19, 60):
        assert assign(queues, cores).total == cores


def test_algorithm_2_counts_visits_in_its_bound() -> None:
    """A tuple in ten needs the slow operator: the printed bound, 1/mu, would refuse 0.3 s."""
    queues = Queues.of([10.0, 1.0], [100.0, 1.0])
    assert provision(queues, 0.3).latency_s <= 0.3


def test_bounds_per_station_are_kept() -> None:
    queues = Queues.of([5.0, 5.0, 5.0], [1.0, 2.0, 10.0])
    answer = assign(queues, 30, least=[1, 8, 3], most=[7, 30, 4])
    assert answer.cores[0] <= 7
    assert answer.cores[1] >= 8
    assert 3 <= answer.cores[2] <= 4
    free = assign(queues, 30)
    assert answer.latency_s >= free.latency_s


def test_cores_that_would_hurt_are_left_over() -> None:
    cost = BatchCost(fixed_s=0.2, per_task_s=0.05, work_s=0.001)
    station = MicroBatchStation(cost=cost, arrival_rate=3000.0)
    answer = assign([station], 1000)
    assert answer.total < 20
    assert all(answer.latency_s <= station.latency(k) for k in range(4, 200))


def test_a_target_just_above_the_limit_of_micro_batches_is_found_at_once() -> None:
    cost = BatchCost(fixed_s=0.1, work_s=0.001)
    station = MicroBatchStation(cost=cost, arrival_rate=5000.0)
    answer = provision([station], 0.15 * (1 + 1e-7))
    assert answer.total == pytest.approx(5.0 * 1e7, rel=1e-6)
    assert station.latency(answer.total - 1) > 0.15 * (1 + 1e-7)


def test_the_search_ends_where_gains_leave_the_range_of_doubles() -> None:
    queues = Queues.of([0.05, 0.06, 0.07], [1.0, 1.0, 1.0])
    for cores in range(100, 500, 7):
        exact = assign(queues, cores, path="exact")
        fast = assign(queues, cores, path="fast")
        assert exact.cores.tolist() == fast.cores.tolist()


def test_more_cores_than_anyone_has_are_no_trouble() -> None:
    queues = Queues.of([13.0] * 3, [1.6, 1.45, 40.0])
    answer = assign(queues, 10**30)
    assert answer.total < 1_000
    assert answer.latency_s == pytest.approx(1 / 1.6 + 1 / 1.45 + 1 / 40, rel=1e-15)


def test_too_few_cores_names_what_is_needed() -> None:
    queues = Queues.of([13.0] * 3, [1.6, 1.45, 40.0])
    with pytest.raises(TooFewCores, match="at least 19 are needed") as refusal:
        assign(queues, 18)
    assert refusal.value.cores_needed == 19
    assert assign(queues, 19).total == 19


def test_a_maximum_below_the_load_names_the_station() -> None:
    queues = Queues.of([13.0] * 3, [1.6, 1.45, 40.0])
    for asked in (
        lambda: assign(queues, 30, most=[99, 4, 99]),
        lambda: provision(queues, 2.0, most=[99, 4, 99]),
    ):
        with pytest.raises(StationTooSmall, match="needs 9") as refusal:
            asked()
        assert refusal.value.station == 1


@pytest.mark.parametrize(
    "queues",
    [
        Queues.of([1.0, 2.0], [1.0, 0.0]),
        Queues.of([1.0, -2.0], [1.0, 5.0]),
        Queues.of([1.0, math.nan], [1.0, 5.0]),
        Queues.of([1.0, math.inf], [1.0, 5.0]),
        Queues.of([1.0, 1.0], [2.0, 5.0], variability=[1.0, -1.0]),
    ],
)
def test_senseless_rates_are_refused(queues: Queues) -> None:
    for asked in (lambda: assign(queues, 30), lambda: provision(queues, 9.0)):
        with pytest.raises(AskedWrongly, match="station 1"):
            asked()


def test_senseless_asks_are_refused() -> None:
    queues = Queues.of([1.0], [2.0])
    for asked in (
        lambda: provision(queues, 0.0),
        lambda: provision(queues, math.nan),
        lambda: assign([], 5),
        lambda: assign(queues, 5, most=[1, 2]),
    ):
        with pytest.raises(AskedWrongly):
            asked()


def test_cores_of_two_speeds() -> None:
    """Fast cores first; slow ones only while they help."""
    classes = (CoreClass(0.25, 10), CoreClass(2.0, 4))
    station = MixedCoreStation(arrival_rate=7.0, service_rate=1.0, classes=classes)
    assert station.stable_from == 4
    assert station.speed(6) == pytest.approx(8.5)
    answer = assign([station], 14)
    assert 4 < answer.total < 14
    assert answer.latency_s == min(station.latency(k) for k in range(4, 15))
    uniform = MixedCoreStation(arrival_rate=7.0, service_rate=1.0, classes=(CoreClass(2.0, 9),))
    same = QueueStation(arrival_rate=7.0, service_rate=2.0)
    assert uniform.latency(5) == pytest.approx(same.latency(5), rel=1e-14)
    with pytest.raises(AskedWrongly, match="complete 2 tuples per second, but 7 arrive"):
        MixedCoreStation(arrival_rate=7.0, service_rate=1.0, classes=(CoreClass(1.0, 2),))


@CASES
@given(st.integers(1, 3), st.integers(1, 3), st.floats(1.0, 2.0), st.floats(0.3, 0.95))
def test_mixed_cores_against_their_markov_chain(
    fast: int, slow: int, ratio: float, utilisation: float
) -> None:
    """A tuple goes to a random idle core; the exact chain has one state per set of busy cores."""
    speeds = np.array([ratio] * fast + [1.0] * slow)
    rate = utilisation * speeds.sum()
    station = MixedCoreStation(
        arrival_rate=rate,
        service_rate=1.0,
        classes=(CoreClass(ratio, fast), CoreClass(1.0, slow)),
    )
    exact = _random_idle_core(speeds, rate)
    assert station.latency(fast + slow) == pytest.approx(exact, rel=0.12)


def _random_idle_core(speeds: np.ndarray, rate: float) -> float:
    """Mean sojourn by Little's law from the stationary distribution."""
    count = len(speeds)
    states = 2**count
    flow = np.zeros((states, states))
    for state in range(states - 1):
        idle = [core for core in range(count) if not state >> core & 1]
        for core in idle:
            flow[state, state | 1 << core] += rate / len(idle)
    for state in range(1, states):
        for core in range(count):
            if state >> core & 1:
                flow[state, state & ~(1 << core)] += speeds[core]
    # With all busy the queue is geometric with ratio rho, so the chain up to there is closed.
    balance = (flow - np.diag(flow.sum(axis=1))).T
    balance[-1] = 1.0
    rho = rate / speeds.sum()
    balance[-1, -1] = 1.0 / (1.0 - rho)
    share = np.linalg.solve(balance, np.eye(states)[-1])
    busy = np.array([bin(state).count("1") for state in range(states)], dtype=float)
    inside = share @ busy + share[-1] * (count * rho / (1.0 - rho) + rho / (1.0 - rho) ** 2)
    return float(inside / rate)
