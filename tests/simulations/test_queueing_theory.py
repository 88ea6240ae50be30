"""The simulator against queueing theory: where theory is exact, within the 99 % interval."""

import math

import numpy as np
import pytest
from scipy.special import stdtrit

from tidegate.models.queueing.network import SOURCE, Edge, Network, Operator
from tidegate.models.queueing.stations import Queues
from tidegate.sim.queueing.arrivals import ArrivalProcess
from tidegate.sim.queueing.distributions import distribution
from tidegate.sim.queueing.network import simulate
from tidegate.sim.queueing.statistics import ConfidenceInterval, batch_means

SEEDS = range(12)


def replications(means: np.ndarray, confidence: float = 0.99) -> ConfidenceInterval:
    """The mean of independent runs, one value each, by Student's t."""
    error = means.std(ddof=1) / math.sqrt(len(means))
    half_width = stdtrit(len(means) - 1, 0.5 + confidence / 2.0) * error
    return ConfidenceInterval(float(means.mean()), float(half_width), confidence)


def network_of(rate: float, services: dict[str, float], *edges: tuple[str, str, float]) -> Network:
    return Network(
        rate=rate,
        operators=tuple(Operator(name=name, service_rate=mu) for name, mu in services.items()),
        edges=tuple(Edge(origin=a, target=b, ratio=ratio) for a, b, ratio in edges),
    )


CHAIN = network_of(
    13.0,
    {"extract": 1.6, "match": 1.45, "aggregate": 40.0},
    (SOURCE, "extract", 1.0),
    ("extract", "match", 1.0),
    ("match", "aggregate", 1.0),
)
SPLIT_AND_JOIN = network_of(
    10.0,
    {"parse": 6.0, "short": 5.0, "long": 2.0, "join": 14.0},
    (SOURCE, "parse", 1.0),
    ("parse", "short", 0.6),
    ("parse", "long", 0.3),
    ("short", "join", 1.0),
    ("long", "join", 1.0),
)
LOOP = network_of(
    6.0,
    {"enter": 4.0, "again": 5.0, "leave": 9.0},
    (SOURCE, "enter", 1.0),
    ("enter", "again", 1.0),
    ("again", "enter", 0.3),
    ("again", "again", 0.2),
    ("again", "leave", 0.5),
)
TWO_SOURCES = network_of(
    9.0,
    {"left": 4.0, "right": 3.6, "both": 5.0},
    (SOURCE, "left", 0.7),
    (SOURCE, "right", 0.3),
    ("left", "both", 1.0),
    ("right", "both", 1.0),
)


@pytest.mark.parametrize(
    ("network", "cores"),
    [
        (CHAIN, (10, 11, 1)),
        (SPLIT_AND_JOIN, (2, 2, 2, 1)),
        (LOOP, (3, 4, 1)),
        (TWO_SOURCES, (2, 1, 3)),
    ],
    ids=["chain", "split and join", "loop", "two sources"],
)
def test_jackson_networks_have_the_mean_of_equation_4(
    network: Network, cores: tuple[int, ...]
) -> None:
    allocation = dict(zip(network.names, cores, strict=True))
    tuples = 50_000
    runs = [
        simulate(network, allocation, seconds=tuples / network.rate, seed=seed) for seed in SEEDS
    ]
    queues = Queues.of_network(network)
    predicted_s = float(queues.network_latency(cores))
    found = replications(np.array([run.visit_sum.mean for run in runs]))
    assert found.covers(predicted_s)
    assert found.half_width < 0.03 * predicted_s
    # No tuple of these networks is ever in two places, so the latency is the same number.
    for run in runs:
        assert np.allclose(run.latencies_s, run.visit_sums_s, rtol=1e-9)
    for index, sojourn_s in enumerate(queues.latency(cores)):
        station = [run.stations[index] for run in runs]
        # Some thirty intervals are looked at here, so each of them has to be a wider one.
        sojourn = replications(np.array([each.mean_sojourn_s for each in station]), 0.9997)
        assert sojourn.covers(float(sojourn_s))
        busy = replications(np.array([each.utilisation for each in station]), 0.9997)
        assert busy.covers(float(queues.utilisation(cores)[index]))


def test_batch_means_cover_the_theory_too() -> None:
    found = simulate(CHAIN, {"extract": 10, "match": 11, "aggregate": 1}, seconds=20_000.0)
    predicted_s = float(Queues.of_network(CHAIN).network_latency((10, 11, 1)))
    assert found.visit_sum.covers(predicted_s)
    assert found.visit_sum.half_width < 0.03 * predicted_s
    assert found.quantile_s(0.95) > found.latency.mean


@pytest.mark.parametrize(
    ("kind", "scv"),
    [
        ("deterministic", 0.0),
        ("uniform", 0.25),
        ("lognormal", 0.5),
        ("lognormal", 2.0),
        ("exponential", 1.0),
        ("hyperexponential", 4.0),
    ],
)
def test_m_g_1_follows_pollaczek_and_khinchine(kind: str, scv: float) -> None:
    """W = rho (1 + scv) / (2 mu (1 - rho)), exact for Poisson arrivals and any service."""
    network = network_of(7.0, {"one": 10.0}, (SOURCE, "one", 1.0))
    runs = [
        simulate(
            network,
            {"one": 1},
            seconds=10_000.0,
            seed=seed,
            services={"one": distribution(scv, kind)},
        ).stations[0]
        for seed in SEEDS
    ]
    wait = replications(np.array([each.mean_wait_s for each in runs]))
    assert wait.covers(0.7 * (1.0 + scv) / (2.0 * 10.0 * 0.3))
    assert wait.half_width < 0.06 * wait.mean
    measured = replications(np.array([each.service_scv for each in runs]))
    assert measured.covers(scv) or measured.mean == pytest.approx(scv, abs=1e-9)
    assert replications(np.array([each.arrival_scv for each in runs])).covers(1.0)


@pytest.mark.parametrize("way", ["bulk of the source", "ratio of its edge"])
def test_bulk_arrivals_follow_theory(way: str) -> None:
    """M^[b]/M/1: a tuple's mean sojourn is (b + 1) / (2 mu (1 - rho))."""
    bulk = 3
    external = 6.0 if way == "bulk of the source" else 2.0
    ratio = 1.0 if way == "bulk of the source" else float(bulk)
    network = network_of(external, {"one": 10.0}, (SOURCE, "one", ratio))
    arrivals = ArrivalProcess(gaps=distribution(1.0), bulk=bulk if ratio == 1.0 else 1)
    runs = [
        simulate(network, {"one": 1}, seconds=4000.0, seed=seed, arrivals=arrivals).stations[0]
        for seed in SEEDS
    ]
    sojourn = replications(np.array([each.mean_sojourn_s for each in runs]))
    assert sojourn.covers((bulk + 1.0) / (2.0 * 10.0 * (1.0 - 0.6)))
    # Zero twice, then the gap of the source: scv = b (1 + 1) - 1.
    assert replications(np.array([each.arrival_scv for each in runs])).covers(2.0 * bulk - 1.0)


def test_gi_g_k_is_closer_than_m_m_k_when_variability_is_far_from_one() -> None:
    for arrival_scv, service_scv in ((0.1, 0.2), (0.0, 0.5), (4.0, 4.0), (1.0, 6.0)):
        network = Network(
            rate=8.0,
            operators=(
                Operator(
                    name="one",
                    service_rate=3.0,
                    arrival_scv=arrival_scv,
                    service_scv=service_scv,
                ),
            ),
            edges=(Edge(origin=SOURCE, target="one"),),
        )
        found = simulate(network, {"one": 3}, seconds=20_000.0)
        station = found.stations[0]
        assert station.arrival_scv == pytest.approx(arrival_scv, rel=0.1, abs=1e-6)
        general = float(Queues.of_network(network, "gigk").network_latency((3,)))
        poisson = float(Queues.of_network(network, "mmk").network_latency((3,)))
        measured = found.visit_sum
        assert abs(general - measured.mean) < 0.5 * abs(poisson - measured.mean)
        assert not measured.covers(poisson)


def test_intervals_are_honest() -> None:
    """Over 200 short runs of a known mean, the 99 % interval misses it about twice."""
    random = np.random.default_rng(5)
    missed = 0
    for _ in range(200):
        noise = random.normal(size=6407)
        correlated = np.convolve(noise, 0.7 ** np.arange(8.0), mode="valid")
        missed += not batch_means(correlated).covers(0.0)
    assert missed <= 8
    assert batch_means(np.zeros(0)).half_width == np.inf
    assert batch_means(np.ones(40)).half_width == np.inf
