"""The figures and tables of Elasticutor, section 5: which can be run, and how."""

from functools import partial

from tidegate.papers.elasticutor import (
    cluster_sizes,
    dynamics,
    exchange,
    instants,
    moving,
    parameters,
    scaling,
    state_sizes,
)
from tidegate.papers.figure import Figure, on_spark, simulated

_SKEW = {"skew": "the exponent of the second skew; default 0.87"}


_on_spark = partial(on_spark, "elasticutor")
_simulated = partial(simulated, "elasticutor")

FIGURES: tuple[Figure, ...] = (
    _on_spark("fig6", "throughput and latency against omega", 28.0, dynamics.run, options=_SKEW),
    _on_spark("fig7", "throughput of every second at omega = 2", 11.0, instants.run, options=_SKEW),
    _on_spark("fig8", "what the move of a shard is made of", 1.0, moving.run_breakdown),
    _on_spark("fig9", "moves against tasks upstream and state size", 4.0, moving.run_sizes),
    _on_spark("fig10", "throughput of one operator against its tasks", 3.5, scaling.run_throughput),
    _on_spark("fig11", "99th percentile of latency against tasks", 10.5, scaling.run_tail),
    _on_spark("fig12", "throughput against the state of a shard", 8.0, state_sizes.run),
    _simulated("fig13", "executors per operator, shards per executor", 1.5, parameters.run),
    _on_spark("fig16", "stock exchange: throughput and latency", 16.0, exchange.run_paradigms),
    _on_spark("table2", "stock exchange: state moved, remote data", 9.0, exchange.run_costs),
    _simulated("table3", "scheduling time on 8 to 32 nodes", 0.5, cluster_sizes.run),
)
"""Figures 5 and 14 are topologies, and 15 is an input."""
