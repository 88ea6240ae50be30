"""Placement of cores: milliseconds per decision, and state moved (Elasticutor 4.2, table 3)."""

import statistics
import time
from typing import Any

import numpy as np

from tidegate.benching import Bench, Options, at_most
from tidegate.control.placement.place import Counts, Executors, place, transition_bytes

SMALL = (32, 8, 32)
LARGE = (1000, 64, 1000)
SMALL_MS, LARGE_MS = 5.0, 200.0
"""Aims: the paper's scheduler took 5.7 ms at 32 nodes; the aim for the larger size is our own."""
SHARDS, SHARD_BYTES = 256, 32 * 1024
SWING = 0.15
"""Standard deviation of the change of an executor's load between two decisions."""


def run(options: Options) -> Bench:
    """Make decisions one after the other, each from the placement of the last.

    The first decisions warm up the compiled code and are not timed. The measure is the CPU time of
    the thread, so that other work on the machine does not count.
    """
    results = []
    cases = options.progress.each((SMALL, LARGE), lambda one: f"{one[0]:,} nodes")
    for nodes, cores_each, executors in cases:
        decisions = (
            (8 if options.quick else 40) if nodes == SMALL[0] else (3 if options.quick else 10)
        )
        result = _case(nodes, cores_each, executors, decisions)
        options.say(
            f"{nodes:,} nodes of {cores_each} cores, {executors:,} executors:"
            f" {result['ms']:.2f} ms a decision"
        )
        results.append(result)
    return Bench(
        "place",
        results,
        [
            at_most("ms, 32 nodes x 8 cores, 32 executors", results[0]["ms"], SMALL_MS, "ms"),
            at_most(
                "ms, 1,000 nodes x 64 cores, 1,000 executors", results[1]["ms"], LARGE_MS, "ms"
            ),
        ],
    )


def _case(nodes: int, cores_each: int, count: int, decisions: int) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    room = np.full(nodes, cores_each)
    home = np.arange(count) % nodes
    held = np.zeros((nodes, count), np.int64)
    held[home, np.arange(count)] = cores_each * nodes // count
    state = np.full(count, float(SHARDS * SHARD_BYTES))
    taken_s, moved, changed = [], [], []
    for decision in range(-2, decisions):
        cores = _asked(rng, count, nodes * cores_each)
        executors = Executors.of(cores, state, cores * 256e3, home)
        begin_s = time.thread_time()
        answer = place(room, held, executors)
        end_s = time.thread_time()
        _verify(room, held, executors, answer.cores, answer.moved_bytes)
        if decision >= 0:
            taken_s.append(end_s - begin_s)
            moved.append(answer.moved_bytes / state.sum())
            changed.append(int(np.abs(answer.cores - held).sum()))
        held = answer.cores
    return {
        "nodes": nodes,
        "cores_each": cores_each,
        "executors": count,
        "decisions": decisions,
        "ms": 1e3 * statistics.median(taken_s),
        "worst_ms": 1e3 * max(taken_s),
        "state_moved": statistics.fmean(moved),
        "cores_changed": statistics.fmean(changed),
    }


def _asked(rng: np.random.Generator, count: int, cores: int) -> Counts:
    """Cores per executor that fill nine tenths of the cluster."""
    load = np.exp(rng.normal(0.0, SWING, count))
    return np.maximum(np.floor(0.9 * cores * load / load.sum()), 1).astype(np.int64)


def _verify(room: Counts, held: Counts, executors: Executors, cores: Counts, moved: float) -> None:
    fits = np.all(cores.sum(axis=1) <= room) and np.all(cores.sum(axis=0) >= executors.cores)
    if not fits or abs(moved - transition_bytes(held, cores, executors.state_bytes)) > 1.0:
        raise AssertionError("a placement does not fit, or does not cost what it says")
