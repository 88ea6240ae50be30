"""Scaling policies over weeks of load: the MST paper's grid, our policy, and ARMA's speed.

Give the real weeks by path with `worldcup` and `tweets` (default ../shared/traces/...). Missing
ones are left out; the generated weeks always run. `seeds` (for our policy; the paper's grid has
five) and `processes` change the size.
"""

import statistics
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.benching import Aim, Bench, Options, at_least, at_most
from tidegate.control.assemble import MACHINE_POLICIES
from tidegate.control.capacity.mst import TABLE_III
from tidegate.control.capacity.priced import Tuning
from tidegate.control.names import PRICED, PRICED_BY_CYCLE
from tidegate.forecast.arma import ArmaFitter
from tidegate.sim.capacity.applications import APPLICATIONS
from tidegate.sim.capacity.backtest import FEWEST_ROWS, Score, TraceForecasts, grid
from tidegate.sim.capacity.cluster import cluster
from tidegate.workload.trace import read_trace
from tidegate.workload.weeks import WEEKS

RHOS = (0.90, 0.95, 0.99)
REAL = {"worldcup": "worldcup98.csv", "tweets": "twitter-2021-08.csv"}
COST_AIMS = {"worldcup": 1.25, "tweets": 1.6}
"""The largest cost relative to the ground truth at rho = 0.99, averaged over the applications."""
APPS = list(APPLICATIONS.values())
GIVEN = Tuning()
TUNINGS = {
    "as shipped": GIVEN,
    "fairness 0": replace(GIVEN, fairness=0.0),
    "fairness 1": replace(GIVEN, fairness=1.0),
    "shortfall 1.2": replace(GIVEN, shortfall_weight=1.2),
    "shortfall 2.5": replace(GIVEN, shortfall_weight=2.5),
}


def run(options: Options) -> Bench:
    """Run every part in turn; `quick` uses one seed and skips the table of tunings."""
    seeds = int(options.extra.get("seeds", 1 if options.quick else 2))
    traces = _traces(options)
    shared = {name: TraceForecasts(trace) for name, trace in traces.items()}
    results: list[dict[str, Any]] = []
    aims: list[Aim] = []
    first = next(iter(shared))
    options.progress.expect(_steps(len(shared), quick=options.quick))
    _arma_speed(traces[first], options, results, aims)
    _paper_grid(first, shared[first], 1 if options.quick else 5, options, results, aims)
    ours = _default_policy(shared, seeds, options, results, aims)
    _peers(shared, ours, options, results, aims)
    if not options.quick:
        _leave_one_out(shared, options, results, aims)
        _unseen(options, results, aims)
    return Bench("backtest", results, aims)


def _steps(traces: int, *, quick: bool) -> int:
    """How many steps the parts have together; a step runs all applications."""
    steps = 2 + traces * (2 * len(RHOS) + 1)
    return steps if quick else steps + traces * len(TUNINGS) + 2 * len(_odd_traces())


def _traces(options: Options) -> dict[str, np.ndarray]:
    traces = {}
    for name, file in REAL.items():
        path = Path(options.extra.get(name, f"../shared/traces/{file}"))
        if path.exists():
            traces[name] = read_trace(path, FEWEST_ROWS)
    return traces | {name: make() for name, make in WEEKS.items()}


def _arma_speed(
    trace: np.ndarray, options: Options, results: list[dict[str, Any]], aims: list[Aim]
) -> None:
    """Time one fit of ARMA(1, 2) to a window of 100, ours and statsmodels', on the same windows."""
    from statsmodels.tsa.arima.model import ARIMA

    options.progress.step("ARMA fits, ours and statsmodels'")
    starts = np.linspace(0, len(trace) - 100, 5 if options.quick else 20).astype(int)
    windows = [trace[start : start + 100] for start in starts]
    fitter = ArmaFitter()
    fitter.fit(windows[0], (1, 2))
    ours, theirs = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for window in windows:
            began = time.perf_counter()
            fitter.fit(window, (1, 2))
            ours.append(time.perf_counter() - began)
            began = time.perf_counter()
            ARIMA(window, order=(1, 0, 2)).fit()
            theirs.append(time.perf_counter() - began)
    ours_ms, theirs_ms = 1e3 * statistics.median(ours), 1e3 * statistics.median(theirs)
    results.append({"part": "arma", "ours_ms": ours_ms, "statsmodels_ms": theirs_ms})
    aims.append(at_least("ARMA fit, times faster than statsmodels", theirs_ms / ours_ms, 20))
    options.say(f"ARMA fit: {ours_ms:.2f} ms, statsmodels {theirs_ms:.1f} ms")


def _paper_grid(
    name: str,
    shared: TraceForecasts,
    seeds: int,
    options: Options,
    results: list[dict[str, Any]],
    aims: list[Aim],
) -> None:
    """Table III: eight policies, eight applications, five seeds; the time includes forecasts."""
    names = list(TABLE_III)
    options.progress.step(f"the paper's eight policies over {name}")
    began = time.perf_counter()
    scores = list(grid(shared, names, APPS, seeds, 0.95, processes=_processes(options)))
    seconds = time.perf_counter() - began
    ladder = {policy: _mean(scores, policy) for policy in names}
    for policy, mean in ladder.items():
        results.append({"part": "ladder", "trace": name, "rho": 0.95, "policy": policy, **mean})
        options.say(f"{policy}: QoS {mean['qos']:.2f} % at {mean['cost_vs_truth']:.3f}")
    results.append({"part": "grid", "runs": len(scores), "seconds": seconds})
    aims.append(at_most(f"grid of {len(scores)} runs", seconds, 60, "s"))
    base = ladder["0:MST"]["qos"]
    for policy in ("1:MST+UA", "2:MST+OL", "4:MST;ARMA"):
        aims.append(at_least(f"{policy} over 0:MST, points", ladder[policy]["qos"] - base, 0))
    best = max(names, key=lambda policy: ladder[policy]["qos"])
    aims.append(
        Aim(
            f"best of the eight is {best}",
            ladder[best]["qos"],
            "policy 7",
            best == "7:MST+UA+OL;ARMA",
        )
    )
    aims.append(at_least("QoS of policy 7", ladder["7:MST+UA+OL;ARMA"]["qos"], 98, "%"))


def _default_policy(
    shared: dict[str, TraceForecasts],
    seeds: int,
    options: Options,
    results: list[dict[str, Any]],
    aims: list[Aim],
) -> dict[str, dict[str, float]]:
    """The priced policy, and the same policy with the paper's cycle, on every trace."""
    at_most_late: dict[str, dict[str, float]] = {}
    for name, one in shared.items():
        least = np.mean([_least(one, app) for app in APPS])
        for rho in RHOS:
            for policy in (PRICED, PRICED_BY_CYCLE):
                used = seeds if policy == PRICED else 1
                options.progress.step(f"{policy} over {name}, QoS target {rho}")
                scores = list(grid(one, [policy], APPS, used, rho, processes=_processes(options)))
                mean = _mean(scores, policy)
                results.append(
                    {
                        "part": "default",
                        "trace": name,
                        "rho": rho,
                        "policy": policy,
                        "least_with_cycle": float(least),
                        **mean,
                    }
                )
                options.say(
                    f"{name} rho {rho}: {policy} QoS {mean['qos']:.2f} % (worst application "
                    f"{mean['worst_qos']:.2f}) at {mean['cost_vs_truth']:.3f}, billed "
                    f"{mean['billed_vs_truth']:.3f}; least with a cycle {least:.3f}"
                )
                if policy == PRICED:
                    aims.append(
                        at_least(f"{name}: QoS at rho {rho}", mean["worst_qos"], 100 * rho - 0.5)
                    )
                    if rho == RHOS[-1]:
                        at_most_late[name] = mean
                        if name in COST_AIMS:
                            cost = mean["cost_vs_truth"]
                            aims.append(at_most(f"{name}: cost at {rho}", cost, COST_AIMS[name]))
    return at_most_late


def _peers(
    shared: dict[str, TraceForecasts],
    ours: dict[str, dict[str, float]],
    options: Options,
    results: list[dict[str, Any]],
    aims: list[Aim],
) -> None:
    """The cheapest other policy that reaches the QoS of ours at rho = 0.99."""
    others = [p for p in MACHINE_POLICIES if not p.startswith(PRICED) and p != "ground-truth"]
    for name, one in shared.items():
        options.progress.step(f"the other policies over {name}")
        scores = list(grid(one, others, APPS, 1, RHOS[-1], processes=_processes(options)))
        means = {policy: _mean(scores, policy) for policy in others}
        for policy, mean in means.items():
            results.append({"part": "peers", "trace": name, "policy": policy, **mean})
        reach = [p for p in others if means[p]["qos"] >= ours[name]["qos"]]
        cheapest = min(reach, key=lambda p: means[p]["cost_vs_truth"])
        ratio = ours[name]["cost_vs_truth"] / means[cheapest]["cost_vs_truth"]
        options.say(
            f"{name}: cheapest other at our QoS {ours[name]['qos']:.2f} % is {cheapest} at "
            f"{means[cheapest]['cost_vs_truth']:.3f}, ours {ours[name]['cost_vs_truth']:.3f}"
        )
        aims.append(at_most(f"{name}: cost over {cheapest}'s, same QoS", ratio, 1.0))


def _leave_one_out(
    shared: dict[str, TraceForecasts],
    options: Options,
    results: list[dict[str, Any]],
    aims: list[Aim],
) -> None:
    """Try the tuning that is best on all traces but one on the remaining trace."""
    apps = [APPLICATIONS["grep"], APPLICATIONS["unique-visitor"]]
    target = RHOS[-1]
    cost: dict[tuple[str, str], float] = {}
    qos: dict[tuple[str, str], float] = {}
    for name, one in shared.items():
        for label, tuning in TUNINGS.items():
            options.progress.step(f"{PRICED} over {name}, {label}")
            scores = list(
                grid(one, [PRICED], apps, 1, target, processes=_processes(options), tuning=tuning)
            )
            mean = _mean(scores, PRICED)
            cost[name, label], qos[name, label] = mean["cost_vs_truth"], mean["worst_qos"]
    for name in shared:
        rest = [other for other in shared if other != name]
        fair = [
            label
            for label in TUNINGS
            if all(qos[other, label] >= 100 * target - 0.5 for other in rest)
        ] or list(TUNINGS)
        chosen = min(fair, key=lambda label: sum(cost[other, label] for other in rest))
        best = min(TUNINGS, key=lambda label: cost[name, label])
        row = {
            "part": "leave-one-out",
            "trace": name,
            "chosen_on_the_others": chosen,
            "qos": qos[name, chosen],
            "cost_vs_truth": cost[name, chosen],
            "cheapest_on_itself": best,
            "its_cost": cost[name, best],
        }
        results.append(row)
        options.say(
            f"leave out {name}: {chosen} gives {row['qos']:.2f} % at "
            f"{row['cost_vs_truth']:.3f} (best on itself: {best}, {row['its_cost']:.3f})"
        )
        aims.append(at_least(f"{name} left out: QoS at {target}", row["qos"], 100 * target - 0.5))


def _unseen(options: Options, results: list[dict[str, Any]], aims: list[Aim]) -> None:
    """Loads of other kinds, defined after the tuning was final, with one application."""
    for name, trace in _odd_traces().items():
        shared = TraceForecasts(np.round(trace))
        for rho in (0.90, 0.99):
            options.progress.step(f"{PRICED} over {name}, QoS target {rho}")
            scores = list(grid(shared, [PRICED], [APPLICATIONS["grep"]], 1, rho))
            mean = _mean(scores, PRICED)
            results.append({"part": "unseen", "trace": name, "rho": rho, **mean})
            options.say(f"{name} rho {rho}: QoS {mean['qos']:.2f} % at {mean['cost_vs_truth']:.3f}")
            aims.append(at_least(f"{name}: QoS at rho {rho}", mean["qos"], 100 * rho - 0.5))


def _odd_traces() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    minute = np.arange(7 * 1440)
    size = len(minute)

    def noise(spread: float) -> np.ndarray:
        return np.exp(spread * rng.standard_normal(size))

    day = np.sin(2 * np.pi * minute / 1440)
    bursts = 2000 * (1 + 0.4 * day) * noise(0.05)
    for begin in np.flatnonzero(rng.random(size) < 1 / 200):
        bursts[begin : begin + rng.integers(3, 20)] *= rng.uniform(2, 6)
    steps = np.repeat(rng.lognormal(7, 0.8, size // 360 + 1), 360)[:size] * noise(0.05)
    walk = 1000 * np.exp(np.cumsum(0.02 * rng.standard_normal(size)))
    one_day = (2000 * (1 + 0.5 * day) * noise(0.1))[:1440]
    nights = 1000 * (1 + 0.9 * day) * noise(0.1)
    nights[minute % 1440 < 200] = 0.0
    return {
        "bursts at random": bursts,
        "steps every six hours": steps,
        "random walk": walk,
        "one day only": one_day,
        "silent nights": nights,
        "40 % noise": 1000 * noise(0.4),
        "constant": np.full(size, 500.0),
    }


def _least(shared: TraceForecasts, app: Any) -> float:
    body = cluster(shared.trace, app, 0)
    return float(body.needed_per_cycle().sum() / body.needed().sum())


def _processes(options: Options) -> int | None:
    return int(options.extra["processes"]) if "processes" in options.extra else None


def _mean(scores: list[Score], policy: str) -> dict[str, float]:
    group = [score for score in scores if score.policy == policy]
    apps = {score.app for score in group}
    per_app = [float(np.mean([s.qos for s in group if s.app == app])) for app in sorted(apps)]
    return {
        "qos": float(np.mean(per_app)),
        "worst_qos": min(per_app),
        "cost_vs_truth": float(np.mean([score.cost_vs_truth for score in group])),
        "billed_vs_truth": float(np.mean([score.billed_vs_truth for score in group])),
        "cost_vs_peak": float(np.mean([score.cost_vs_peak for score in group])),
        "scalings": float(np.mean([score.scalings for score in group])),
    }
