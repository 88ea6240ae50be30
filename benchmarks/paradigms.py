"""Static, resource-centric and executor-centric by simulation (Elasticutor 5: figures, tables)."""

from dataclasses import replace
from typing import Any

import numpy as np

from tidegate.benching import Bench, Options, at_least, at_most
from tidegate.sim.placement.elastic import ElasticOutcome, Experiment, micro, stocks
from tidegate.sim.placement.elastic import run as simulate
from tidegate.sim.placement.key_load import ShuffledZipf
from tidegate.sim.placement.nodes import Nodes
from tidegate.sim.placement.paradigms import PARADIGMS, Paradigm

Results = list[dict[str, Any]]
_QUICK, _ALL = 26, 88
"""How many simulations there are in the short and in the whole form."""
OPEN_LOAD = 0.4
"""The load relative to the capacity of all cores; even the static paradigm can carry it."""


def run(options: Options) -> Bench:
    """Figures 6 and 7 (omega), 13 (executors and shards), tables 2 and 3 (the stock exchange)."""
    results: Results = []
    options.progress.expect(_QUICK if options.quick else _ALL)
    most, held = _omega(options, results)
    if not options.quick:
        _grid(options, results)
    one, split = _regrouped(options, results)
    exchange = _exchange(options, results)
    if not options.quick:
        _sizes(options, results)
    ec, naive = exchange["executor-centric"], exchange["naive-ec"]
    double = min(
        most[omega, "executor-centric"].throughput / most[omega, "static"].throughput
        for omega, _ in most
        if omega >= 2
    )
    # One key is served by one core at a time, whatever the paradigm.
    hottest = 1.0 / (0.001 * float(ShuffledZipf().shares(0).max()))
    central = [most[omega, "resource-centric"].throughput for omega in (0, 16)]
    waits = [held[16, name].latency_s for name in ("resource-centric", "executor-centric")]
    aims = [
        at_least("throughput, executor-centric over static, least of omega >= 2", double, 2.0),
        at_least(
            "throughput, executor-centric at omega 2 over what the hottest key allows",
            most[2, "executor-centric"].throughput / hottest,
            0.9,
        ),
        at_least(
            "throughput, executor-centric over static, stock exchange",
            ec.throughput / exchange["static"].throughput,
            2.0,
        ),
        at_most("throughput, resource-centric, omega 16 over 0", central[1] / central[0], 0.5),
        at_least("latency, resource- over executor-centric, omega 16", waits[0] / waits[1], 100.0),
        at_least(
            "state moved, naive-EC over executor-centric, stock exchange",
            naive.state_bytes_per_s / max(ec.state_bytes_per_s, 1.0),
            5.0,
        ),
        at_least(
            "remote data, naive-EC over executor-centric, stock exchange",
            naive.remote_bytes_per_s / max(ec.remote_bytes_per_s, 1.0),
            10.0,
        ),
        at_least(
            "throughput, one executor of all nodes, split over not split",
            split.throughput / one.throughput,
            2.0,
        ),
    ]
    return Bench("paradigms", results, aims)


Outcomes = dict[tuple[int, Paradigm], ElasticOutcome]


def _omega(options: Options, results: Results) -> tuple[Outcomes, Outcomes]:
    """Figure 6: the highest throughput, and latency at a load that all can carry.

    For figure 7: the lowest second, and the share of seconds below 90 % of the median.
    """
    most: Outcomes = {}
    held: Outcomes = {}
    for omega in (0, 2, 16) if options.quick else (0, 1, 2, 4, 8, 16):
        for paradigm in PARADIGMS:
            full = _timed(micro(omega, paradigm), options)
            most[omega, paradigm] = _note(options, results, "saturated", full, omega=omega)
            if options.quick and (omega == 0 or paradigm == "naive-ec"):
                continue
            part = replace(full, offered=OPEN_LOAD, patient=True)
            held[omega, paradigm] = _note(options, results, "open", part, omega=omega)
        if options.quick and omega == 0:
            continue
        at_once = replace(
            _timed(micro(omega, "resource-centric"), options), shards_per_synchronisation=8192
        )
        _note(options, results, "saturated, synchronised once", at_once, omega=omega)
    return most, held


def _grid(options: Options, results: Results) -> None:
    """Figure 13: executors per operator and shards per executor under three workloads."""
    for omega, tuple_bytes in ((2, 128.0), (2, 8192.0), (16, 128.0)):
        for executors in (1, 8, 32, 256):
            for shards_each in (16, 256):
                experiment = replace(
                    _timed(micro(omega, "executor-centric", tuple_bytes=tuple_bytes), options),
                    executors=executors,
                    shards_each=shards_each,
                )
                _note(options, results, "executors and shards", experiment, omega=omega)


def _regrouped(options: Options, results: Results) -> tuple[ElasticOutcome, ElasticOutcome]:
    """Figure 13's worst case, one executor for all cores and large tuples, with and without splits.

    The interval is short, so that all splits are done when the warm-up ends.
    """
    alone = replace(
        _timed(micro(2, "executor-centric", tuple_bytes=8192.0), options),
        executors=1,
        shards_each=8192,
    )
    first = _note(options, results, "one executor", alone, omega=2)
    often = replace(alone, regroup_every_s=2.0)
    return first, _note(options, results, "one executor, split", often, omega=2)


def _exchange(options: Options, results: Results) -> dict[Paradigm, ElasticOutcome]:
    """Table 2 and figure 16: the stock exchange."""
    return {
        paradigm: _note(options, results, "stock exchange", _timed(stocks(paradigm), options))
        for paradigm in PARADIGMS
    }


def _sizes(options: Options, results: Results) -> None:
    """Table 3, and a thousand nodes; keys grow with the cluster, or one key would limit it."""
    for nodes in (8, 16, 32, 1000):
        experiment = replace(
            _timed(micro(2, "executor-centric", keys=nodes * 10_000 // 32), options),
            nodes=Nodes(count=nodes),
            executors=nodes,
        )
        if nodes > 32:
            experiment = replace(experiment, seconds=40.0, warm_up_s=10.0)
        _note(options, results, "nodes", experiment, omega=2)


def _timed(experiment: Experiment, options: Options) -> Experiment:
    """Set how long each runs: whole cycles of shuffles after the warm-up."""
    return replace(experiment, seconds=45.0 if options.quick else 75.0, warm_up_s=15.0)


def _note(
    options: Options,
    results: Results,
    part: str,
    experiment: Experiment,
    *,
    omega: int | None = None,
) -> ElasticOutcome:
    options.progress.step(f"{part}, {experiment.paradigm}")
    outcome = simulate(experiment)
    seconds = np.array(outcome.series[round(experiment.warm_up_s) :])
    row: dict[str, Any] = {
        "part": part,
        "paradigm": experiment.paradigm,
        "omega": omega,
        "nodes": experiment.nodes.count,
        "executors": experiment.executors,
        "executors_at_end": outcome.executors,
        "shards_each": experiment.shards_each,
        "tuple_bytes": experiment.operators[0].bytes_in,
        "tuples_per_s": outcome.throughput,
        "lowest_second": float(seconds.min()),
        "share_below_90": float(np.mean(seconds < 0.9 * np.median(seconds))),
        "latency_ms": 1e3 * outcome.latency_s,
        "state_mb_per_s": outcome.state_bytes_per_s / 1e6,
        "remote_mb_per_s": outcome.remote_bytes_per_s / 1e6,
        "moves": outcome.moves,
        "scheduling_ms": outcome.scheduling_ms,
    }
    results.append(row)
    options.say(
        f"{part}{'' if omega is None else f' {omega}'}, {experiment.paradigm},"
        f" {experiment.nodes.count} nodes: {outcome.throughput:,.0f} tuples/s,"
        f" {1e3 * outcome.latency_s:,.1f} ms"
    )
    return outcome
