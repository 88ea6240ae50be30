"""Shard balance: moves and milliseconds from zipf loads (Elasticutor 3.1)."""

import statistics
import time
from typing import Any

import numpy as np

from tidegate.benching import Aim, Bench, Options, at_most
from tidegate.control.balance import THETA, balance, imbalance
from tidegate.control.route import even_route, rerouted

KEYS = 100_000
CASES = ((256, 8, 0.5), (256, 8, 1.0), (1024, 64, 0.5), (8192, 256, 0.5))
BOUND_MS = 5.0


def run(options: Options) -> Bench:
    """Balances even routes of skewed shards; every answer is checked against its own route."""
    results: list[dict[str, Any]] = []
    aims: list[Aim] = []
    for shards, tasks, exponent in CASES:
        result = _case(shards, tasks, exponent, 5 if options.quick else 30)
        options.say(
            f"{shards:,} shards on {tasks} tasks, zipf {exponent}: {result['moves']} moves in"
            f" {result['ms']:.2f} ms, delta {result['before']:.2f} to {result['after']:.2f}"
        )
        results.append(result)
    largest = results[-1]
    aims.append(at_most("ms, 8,192 shards on 256 tasks", largest["ms"], BOUND_MS, "ms"))
    aims.append(at_most("delta reached there", largest["after"], THETA))
    return Bench("balance", results, aims)


def _case(shards: int, tasks: int, exponent: float, rounds: int) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    weights = np.arange(1, KEYS + 1.0) ** -exponent
    loads = np.bincount(rng.integers(0, shards, KEYS), weights, shards)
    route = even_route(shards, tasks)
    answer = balance(loads, route, tasks)
    reached = imbalance(loads, rerouted(route, answer.moves, tasks), tasks)
    if abs(reached - answer.after) > 1e-9:
        raise AssertionError(f"said delta {answer.after}, but the route gives {reached}")
    taken_s = []
    for _ in range(rounds):
        begin_s = time.perf_counter()
        balance(loads, route, tasks)
        taken_s.append(time.perf_counter() - begin_s)
    return {
        "shards": shards,
        "tasks": tasks,
        "zipf": exponent,
        "moves": len(answer.moves),
        "ms": 1e3 * statistics.median(taken_s),
        "before": answer.before,
        "after": answer.after,
        "hot_shard": None if answer.hot is None else answer.hot.share,
    }
