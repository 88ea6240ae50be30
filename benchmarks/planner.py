"""The time of a decision by number of cores (DRS table II), and for very large networks."""

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tidegate.benching import Aim, Bench, Options, at_least, at_most
from tidegate.control.allocation.allocate import CoreAllocation, assign, provision
from tidegate.models.queueing.stations import Queues

SERVICE_RATES = [1.6, 1.45, 40.0]
RATE_PER_CORE = 13.0 / 22.0
DRS_MICROSECONDS = {12: 4.6, 24: 8.2, 48: 19.0, 96: 79.0, 192: 438.0}
"""Times of DRS's published Java code on a similar machine. From 96 cores on its factorials
overflow, and it gives 20 cores to the operator that needs 2."""


def run(options: Options) -> Bench:
    """Time small networks as DRS does, then large ones; every result is checked."""
    results: list[dict[str, Any]] = []
    aims: list[Aim] = []
    large = ((1_000, 100_000, 0.020), (100_000, 10_000_000, 3.0))
    options.progress.expect(len(DRS_MICROSECONDS) + len(large))
    for cores, drs_us in DRS_MICROSECONDS.items():
        options.progress.step(f"3 stations, {cores} cores")
        result = _small(cores, 30 if options.quick else 200)
        result["drs_java_us"] = drs_us
        options.say(f"3 stations, {cores} cores: {result['us']:.1f} us, {result['allocation']}")
        results.append(result)
        aims.append(at_most(f"us per decision, {cores} cores", result["us"], 20.0, "us"))
    right = sum(result["right"] for result in results)
    aims.append(at_least("of the five, right by brute force", right, len(DRS_MICROSECONDS)))
    for stations, cores, bound_s in large:
        options.progress.step(f"{stations:,} stations, {cores:,} cores")
        result = _large(stations, cores, 3 if options.quick else 9)
        options.say(
            f"{stations:,} stations, {cores:,} cores: assign {result['assign_ms']:.1f} ms,"
            f" provision {result['provision_ms']:.1f} ms, one by one {result['exact_ms']:.1f} ms"
        )
        results.append(result)
        name = f"{stations:,} stations, {cores:,} cores"
        aims.append(at_most(f"ms to assign, {name}", result["assign_ms"], 1e3 * bound_s, "ms"))
        aims.append(at_least(f"same as one by one, {name}", float(result["right"]), 1))
    return Bench("planner", results, aims)


def _small(cores: int, rounds: int) -> dict[str, Any]:
    """Time a whole decision, from three rates as Python floats to cores.

    The result is the best of many rounds, which are short enough that some run undisturbed on a
    busy machine; the median round is reported too.
    """
    rate = RATE_PER_CORE * cores
    rates = [rate, rate, rate]

    def decide() -> CoreAllocation:
        return assign(Queues.of(rates, SERVICE_RATES), cores)

    answer = decide()
    taken_s = [_seconds(decide, 100) for _ in range(rounds)]
    return {
        "stations": 3,
        "cores": cores,
        "us": 1e6 * min(taken_s),
        "us_median": 1e6 * statistics.median(taken_s),
        "allocation": ":".join(map(str, answer.cores)),
        "latency_ms": 1e3 * answer.latency_s,
        "right": answer.cores.tolist() == _brute_force(rates, cores),
    }


def _brute_force(rates: list[float], cores: int) -> list[int]:
    """The latency of the best split of the cores, by trying all of them."""
    queues = Queues.of(rates, SERVICE_RATES)
    low = queues.stable_from
    splits = np.array(
        [
            (first, second, cores - first - second)
            for first, second in itertools.product(range(low[0], cores), range(low[1], cores))
            if cores - first - second >= low[2]
        ]
    )
    best: list[int] = splits[np.argmin(queues.network_latency(splits))].tolist()
    return best


def _large(stations: int, cores: int, repeats: int) -> dict[str, Any]:
    """Stations of mixed speed and load that leave a tenth of the cores idle."""
    random = np.random.default_rng(7)
    service = random.uniform(0.5, 50.0, stations)
    share = random.uniform(0.1, 1.9, stations)
    load = 0.9 * cores * share / share.sum()
    queues = Queues.of(load * service, service, external_rate=1.0)
    answer = assign(queues, cores)
    fewest = provision(queues, answer.latency_s)
    began = time.perf_counter()
    exact = assign(queues, cores, path="exact")
    exact_s = time.perf_counter() - began
    assign_s = statistics.median(_seconds(lambda: assign(queues, cores), 1) for _ in range(repeats))
    provision_s = statistics.median(
        _seconds(lambda: provision(queues, answer.latency_s), 1) for _ in range(repeats)
    )
    return {
        "stations": stations,
        "cores": cores,
        "assign_ms": 1e3 * assign_s,
        "provision_ms": 1e3 * provision_s,
        "exact_ms": 1e3 * exact_s,
        "latency_ms": 1e3 * answer.latency_s,
        "right": bool(
            np.array_equal(answer.cores, exact.cores)
            and np.array_equal(answer.cores, fewest.cores)
            and answer.total == cores
        ),
    }


def _seconds(work: Callable[[], object], repeats: int) -> float:
    began = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - began) / repeats
