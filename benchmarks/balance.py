"""Shard balance: moves and milliseconds from zipf loads (Elasticutor 3.1)."""

import statistics
import time
from typing import Any

import numpy as np

from tidegate.benching import Aim, Bench, Options, at_most
from tidegate.control.shards.balance import THETA, balance, imbalance
from tidegate.control.shards.route import even_route, rerouted

KEYS = 100_000
CASES = ((256, 8, 0.5), (256, 8, 1.0), (1024, 64, 0.5), (8192, 256, 0.5))
TASKS_A_NODE = 8
BOUND_MS = 5.0


def run(options: Options) -> Bench:
    """Balance even routes of skewed shards; every result is checked against its own route."""
    results: list[dict[str, Any]] = []
    aims: list[Aim] = []
    cases = options.progress.each(CASES, lambda one: f"{one[0]:,} shards on {one[1]} tasks")
    for shards, tasks, exponent in cases:
        result = _case(shards, tasks, exponent, 5 if options.quick else 30)
        options.say(
            f"{shards:,} shards on {tasks} tasks, zipf {exponent}: {result['moves']} moves in"
            f" {result['ms']:.2f} ms, delta {result['before']:.2f} to {result['after']:.2f};"
            f" knowing nodes of {TASKS_A_NODE} tasks: {result['crossing']} instead of"
            f" {result['crossing_unknown']} leave their node, in {result['ms_nodes']:.2f} ms"
        )
        results.append(result)
    largest = results[-1]
    aims.append(at_most("ms, 8,192 shards on 256 tasks", largest["ms"], BOUND_MS, "ms"))
    aims.append(at_most("ms there, knowing nodes", largest["ms_nodes"], BOUND_MS, "ms"))
    aims.append(at_most("delta reached there", largest["after"], THETA))
    aims.append(at_most("delta reached there, knowing nodes", largest["after_nodes"], THETA))
    return Bench("balance", results, aims)


def _case(shards: int, tasks: int, exponent: float, rounds: int) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    weights = np.arange(1, KEYS + 1.0) ** -exponent
    loads = np.bincount(rng.integers(0, shards, KEYS), weights, shards)
    route = even_route(shards, tasks)
    nodes = [f"node{task // TASKS_A_NODE}" for task in range(tasks)]
    answer, answer_nodes = (balance(loads, route, tasks, THETA, known) for known in ((), nodes))
    for one in (answer, answer_nodes):
        reached = imbalance(loads, rerouted(route, one.moves, tasks), tasks)
        if abs(reached - one.after) > 1e-9:
            raise AssertionError(f"reported a delta of {one.after}, but the route gives {reached}")
    taken_s: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(rounds):
        for known in (False, True):
            begin_s = time.perf_counter()
            balance(loads, route, tasks, THETA, nodes if known else ())
            taken_s[known].append(time.perf_counter() - begin_s)
    return {
        "shards": shards,
        "tasks": tasks,
        "zipf": exponent,
        "moves": len(answer.moves),
        "ms": 1e3 * statistics.median(taken_s[False]),
        "ms_nodes": 1e3 * statistics.median(taken_s[True]),
        "before": answer.before,
        "after": answer.after,
        "after_nodes": answer_nodes.after,
        "crossing_unknown": sum(
            nodes[route[shard]] != nodes[task] for shard, task in answer.moves.items()
        ),
        "crossing": answer_nodes.crossing,
        "hot_shard": None if answer.hot is None else answer.hot.share,
    }
