"""The simulator against cases whose every number can be worked out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.models.queueing.network import SOURCE, Edge, Network, Operator
from tidegate.sim.queueing import engine_run
from tidegate.sim.queueing.allocation import unstable_stations
from tidegate.sim.queueing.arrivals import ArrivalProcess
from tidegate.sim.queueing.distributions import KINDS, distribution, natural
from tidegate.sim.queueing.emission import EMISSIONS, Emission
from tidegate.sim.queueing.network import simulate
from tidegate.sim.queueing.statistics import Simulation

EVERY_SECOND = ArrivalProcess(gaps=distribution(0.0))


def fixed(name: str, service_s: float) -> Operator:
    return Operator(name=name, service_rate=1.0 / service_s, service_scv=0.0)


def network_of(rate: float, operators: list[Operator], *edges: tuple[str, str, float]) -> Network:
    return Network(
        rate=rate,
        operators=tuple(operators),
        edges=tuple(Edge(origin=a, target=b, ratio=ratio) for a, b, ratio in edges),
    )


def single(rate: float, operator: Operator) -> Network:
    return network_of(rate, [operator], (SOURCE, operator.name, 1.0))


def same(one: Simulation, other: Simulation) -> bool:
    return (
        np.array_equal(one.latencies_s, other.latencies_s)
        and np.array_equal(one.visit_sums_s, other.visit_sums_s)
        and one.stations == other.stations
    )


def test_branches_run_side_by_side_and_the_visit_sum_adds_them() -> None:
    network = network_of(
        0.1,
        [fixed("a", 1.0), fixed("b", 2.0), fixed("c", 3.0), fixed("d", 0.5)],
        (SOURCE, "a", 1.0),
        ("a", "b", 1.0),
        ("a", "c", 1.0),
        ("b", "d", 1.0),
        ("c", "d", 1.0),
    )
    found = simulate(network, dict.fromkeys("abcd", 1), seconds=1000.0, arrivals=EVERY_SECOND)
    assert found.latencies_s == pytest.approx(np.full(found.completed, 1.0 + 3.0 + 0.5))
    assert found.visit_sums_s == pytest.approx(np.full(found.completed, 1.0 + 2.0 + 3.0 + 1.0))
    assert [station.utilisation for station in found.stations] == pytest.approx(
        [0.1, 0.2, 0.3, 0.1], abs=1e-3
    )


def test_a_multiplied_tuple_is_done_when_its_last_copy_is() -> None:
    network = network_of(0.1, [fixed("a", 1.0), fixed("b", 1.0)], (SOURCE, "a", 1), ("a", "b", 3))
    found = simulate(network, {"a": 1, "b": 2}, seconds=200.0, arrivals=EVERY_SECOND)
    # Three copies on two cores: two at once, the third waits a second.
    assert found.latencies_s == pytest.approx(np.full(found.completed, 3.0))
    assert found.visit_sums_s == pytest.approx(np.full(found.completed, 1.0 + 1.0 + 1.0 + 2.0))
    assert found.stations[1].mean_wait_s == pytest.approx(1.0 / 3.0)
    assert found.stations[1].longest_queue == 1


def test_a_tuple_that_enters_nowhere_is_done_at_once() -> None:
    network = network_of(1.0, [fixed("a", 0.5)], (SOURCE, "a", 0.5))
    found = simulate(network, {"a": 1}, seconds=100.0, arrivals=EVERY_SECOND, emission="even")
    assert found.latencies_s.max() == pytest.approx(0.5)
    assert (found.latencies_s == 0.0).sum() == found.completed // 2


@settings(max_examples=40, deadline=None)
@given(
    cores=st.integers(1, 9),
    load=st.floats(0.1, 1.3),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**40),
)
def test_deterministic_services_follow_the_recursion(
    cores: int, load: float, kind: str, seed: int
) -> None:
    """G/D/k: tuple n leaves one service after its arrival or after tuple n - k, if that is later.

    It holds tuple by tuple, so it catches any lost, swapped or overtaken tuple.
    """
    network = single(1.0, fixed("a", cores * load))
    found = simulate(
        network,
        {"a": cores},
        seconds=300.0,
        warm_up_s=0.0,
        seed=seed,
        arrivals=ArrivalProcess(gaps=natural(kind)),
    )
    left: list[float] = []
    for number, arrived_s in enumerate(found.arrived_s):
        free_s = left[number - cores] if number >= cores else 0.0
        left.append(max(arrived_s, free_s) + cores * load)
    assert found.arrived_s + found.latencies_s == pytest.approx(np.array(left), rel=1e-9)


@st.composite
def networks(draw: st.DrawFn) -> tuple[Network, dict[str, int]]:
    count = draw(st.integers(1, 5))
    names = [f"n{index}" for index in range(count)]
    operators = [
        Operator(
            name=name,
            service_rate=draw(st.floats(0.5, 20.0)),
            service_scv=draw(st.sampled_from([0.0, 0.2, 0.7, 1.0, 3.0])),
        )
        for name in names
    ]
    edges = {(SOURCE, names[0]): draw(st.sampled_from([0.5, 1.0, 2.3]))}
    for index in range(1, count):  # forward edges may multiply; back edges must die out
        origin = names[draw(st.integers(0, index - 1))]
        edges[origin, names[index]] = draw(st.sampled_from([0.3, 0.6, 1.0, 2.0]))
    if draw(st.booleans()):
        edges[names[draw(st.integers(0, count - 1))], names[0]] = 0.01
    cores = {name: draw(st.integers(1, 4)) for name in names}
    return network_of(5.0, operators, *((a, b, ratio) for (a, b), ratio in edges.items())), cores


@settings(max_examples=60, deadline=None)
@given(
    case=networks(),
    emission=st.sampled_from(EMISSIONS),
    bulk=st.integers(1, 4),
    seed=st.integers(0, 2**32),
)
def test_nothing_is_lost_and_nothing_is_made(
    case: tuple[Network, dict[str, int]], emission: Emission, bulk: int, seed: int
) -> None:
    network, cores = case
    found = simulate(
        network,
        cores,
        seconds=40.0,
        warm_up_s=0.0,
        seed=seed,
        emission=emission,
        arrivals=ArrivalProcess(gaps=distribution(1.0), bulk=bulk),
    )
    assert found.completed % bulk == 0
    assert np.isfinite(found.latencies_s).all()
    assert (found.latencies_s >= 0.0).all()
    assert (found.visit_sums_s >= found.latencies_s * (1 - 1e-9) - 1e-12).all()
    assert (np.diff(found.arrived_s) >= 0.0).all()
    # What stations saw within the window is part of what the trees add up to.
    seen_s = sum(each.arrivals * each.mean_sojourn_s for each in found.stations if each.arrivals)
    assert seen_s <= found.visit_sums_s.sum() * (1 + 1e-9)
    assert sum(each.arrivals for each in found.stations) <= found.visits
    # Little's law holds over any window for waits that end within it, so at most for these.
    for each in found.stations:
        assert 0.0 <= each.utilisation <= 1.0 + 1e-9
        if each.arrivals:
            assert each.mean_queue <= each.arrival_rate * each.mean_wait_s * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("ratio", [0.25, 1.0, 2.75])
@pytest.mark.parametrize("emission", EMISSIONS)
def test_every_way_of_rounding_keeps_the_mean(ratio: float, emission: Emission) -> None:
    network = network_of(
        100.0, [fixed("a", 0.001), fixed("b", 0.0001)], (SOURCE, "a", 1.0), ("a", "b", ratio)
    )
    found = simulate(network, {"a": 1, "b": 1}, seconds=400.0, emission=emission)
    sent = found.stations[1].arrivals / found.stations[0].arrivals
    exact = emission == "even" or (emission != "geometric" and ratio == 1.0)
    assert sent == pytest.approx(ratio, rel=1e-4 if exact else 0.03)


def test_a_routed_split_sends_a_tuple_one_way_only() -> None:
    operators = [fixed("a", 0.001), fixed("b", 1.0), fixed("c", 2.0)]
    edges = ((SOURCE, "a", 1.0), ("a", "b", 0.4), ("a", "c", 0.6))
    network = network_of(0.1, operators, *edges)
    cores = dict.fromkeys("abc", 1)
    routed = simulate(network, cores, seconds=20_000.0, arrivals=EVERY_SECOND)
    assert set(np.round(routed.visit_sums_s, 6)) == {1.001, 2.001}
    independent = simulate(
        network, cores, seconds=20_000.0, arrivals=EVERY_SECOND, emission="independent"
    )
    assert set(np.round(independent.visit_sums_s, 6)) == {0.001, 1.001, 2.001, 3.001}


def test_the_same_seed_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    network = network_of(
        8.0,
        [Operator(name="a", service_rate=5.0, service_scv=3.0), Operator(name="b", service_rate=7)],
        (SOURCE, "a", 1.0),
        ("a", "b", 1.5),
        ("b", "a", 0.2),
    )
    cores = {"a": 4, "b": 4}
    first = simulate(network, cores, seconds=2000.0, seed=7)
    assert same(first, simulate(network, cores, seconds=2000.0, seed=7))
    assert not same(first, simulate(network, cores, seconds=2000.0, seed=8))
    # Neither where the engine pauses nor how its tables grow may show.
    monkeypatch.setattr(engine_run, "EVENTS_PER_CALL", 97)
    monkeypatch.setattr(engine_run, "WAITING_AT_FIRST", 8)
    told: list[float] = []
    paused = simulate(network, cores, seconds=2000.0, seed=7, progress=told.append)
    assert same(first, paused)
    assert told == sorted(told) and told[0] >= 0.0 and told[-1] == 1.0


def test_allocations_are_compared_on_the_same_arrivals() -> None:
    network = single(8.0, Operator(name="a", service_rate=5.0))
    few = simulate(network, {"a": 2}, seconds=500.0)
    many = simulate(network, {"a": 3}, seconds=500.0)
    assert np.array_equal(few.arrived_s, many.arrived_s)
    assert (many.latencies_s <= few.latencies_s + 1e-9).mean() > 0.999


def test_rates_change_as_told() -> None:
    network = single(1.0, fixed("a", 1e-4))
    rates = (50.0, 0.0, 150.0, 100.0)
    steady = ArrivalProcess(gaps=distribution(0.0), rates=rates, step_s=10.0)
    for warm_up_s in (0.0, 25.0):
        found = simulate(network, {"a": 1}, seconds=40.0, arrivals=steady, warm_up_s=warm_up_s)
        counts = np.histogram(found.arrived_s, bins=[0, 10, 20, 30, 40])[0]
        assert counts == pytest.approx(np.array(rates) * 10.0, abs=1.0)
    poisson = replace(steady, gaps=distribution(1.0))
    found = simulate(network, {"a": 1}, seconds=50.0, arrivals=poisson)  # the last rate holds on
    counts = np.histogram(found.arrived_s, bins=[0, 10, 20, 30, 40, 50])[0]
    expected = np.array([*rates, rates[-1]]) * 10.0
    assert (np.abs(counts - expected) <= 4.0 * np.sqrt(expected)).all()
    assert counts[1] == 0


def test_a_rate_that_ends_at_zero_ends_the_arrivals() -> None:
    found = simulate(
        single(1.0, fixed("a", 0.01)),
        {"a": 1},
        seconds=100.0,
        arrivals=ArrivalProcess(gaps=distribution(0.0), rates=(10.0, 0.0), step_s=1.0),
    )
    assert found.completed == pytest.approx(10, abs=1)


def test_an_unstable_run_drains_and_one_that_outgrows_its_room_names_the_station() -> None:
    network = network_of(
        10.0, [fixed("fast", 0.01), fixed("slow", 1.0)], (SOURCE, "fast", 1), ("fast", "slow", 1)
    )
    cores = {"fast": 1, "slow": 2}
    assert unstable_stations(network, (1, 2)) == {"slow": 11}
    found = simulate(network, cores, seconds=100.0, warm_up_s=0.0, arrivals=EVERY_SECOND)
    assert found.completed == pytest.approx(1000, abs=1)
    assert found.latencies_s[-1] == pytest.approx(found.completed / 2 - 100.0, abs=2.0)
    with pytest.raises(TidegateError, match=r"operator 'slow' has 50\d tuples queued"):
        simulate(network, cores, seconds=1000.0, most_waiting=500)


@pytest.mark.parametrize(
    ("cores", "message"),
    [
        ({"extrat": 1}, "unknown operator 'extrat'; did you mean 'extract'"),
        ({}, "no cores to 'extract'"),
        ({"extract": 0}, "'extract' needs a whole number of cores of at least 1, not 0"),
        ({"extract": 1.5}, "of at least 1, not 1.5"),
        ({"extract": True}, "of at least 1, not True"),
    ],
)
def test_a_wrong_allocation_is_refused(cores: dict[str, int], message: str) -> None:
    with pytest.raises(AskedWrongly, match=message):
        simulate(single(1.0, fixed("extract", 0.1)), cores, seconds=1.0)


def test_wrong_options_are_refused() -> None:
    network = single(1.0, fixed("a", 0.1))
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(AskedWrongly, match="must be a number above 0"):
            simulate(network, {"a": 1}, seconds=seconds)
    with pytest.raises(AskedWrongly, match="fewer seconds"):
        simulate(network, {"a": 1}, seconds=1e12)
    with pytest.raises(AskedWrongly, match="warm-up"):
        simulate(network, {"a": 1}, seconds=1.0, warm_up_s=-1.0)
    with pytest.raises(AskedWrongly, match="seed"):
        simulate(network, {"a": 1}, seconds=1.0, seed=-1)
    with pytest.raises(AskedWrongly, match="bulk"):
        simulate(network, {"a": 1}, seconds=1.0, arrivals=replace(EVERY_SECOND, bulk=0))
    loop = network_of(1.0, [fixed("a", 0.1)], (SOURCE, "a", 1.0), ("a", "a", 1.0))
    with pytest.raises(AskedWrongly, match="'a' has a gain of 1 or more"):
        simulate(loop, {"a": 1}, seconds=1.0)


@pytest.mark.parametrize(
    ("scv", "kind"),
    [(0.0, "deterministic"), (0.2, "uniform"), (0.6, "lognormal"), (1.0, "exponential")],
)
def test_the_plainest_kind_is_chosen(scv: float, kind: str) -> None:
    assert distribution(scv).kind == kind
    assert distribution(3.0).kind == "hyperexponential"


@pytest.mark.parametrize(
    ("scv", "kind", "message"),
    [
        (0.5, "uniform", "lies between 0 and 1/3, not 0.5"),
        (0.5, "hyperexponential", "is 1 or more"),
        (-1.0, None, "of at least 0"),
        (1.0, "exponentail", "did you mean 'exponential'"),
    ],
)
def test_a_distribution_that_cannot_be_is_refused(
    scv: float, kind: str | None, message: str
) -> None:
    with pytest.raises(AskedWrongly, match=message):
        distribution(scv, kind)
