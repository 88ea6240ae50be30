"""Figure 16 and table 2: the stock exchange under the paradigms, and what naive moves cost."""

from collections.abc import Mapping
from dataclasses import replace

from tidegate.apps.micro.moves import CACHE
from tidegate.apps.paradigms import NAIVE, OURS, RESOURCE_CENTRIC, STATIC
from tidegate.apps.sse.throughput import (
    MEASURED_STOCKS,
    ORDER_S,
    ORDERS_PER_S,
    measure_exchange,
)
from tidegate.apps.work_done import WorkDone, averaged
from tidegate.benching import Aim, at_least
from tidegate.papers.elasticutor.instants import every_second
from tidegate.papers.elasticutor.measured_costs import nodes_of
from tidegate.papers.elasticutor.rotation import in_turns
from tidegate.papers.elasticutor.sessions import LOCAL, spark_on
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.sim.placement.elastic import ElasticOutcome, stocks
from tidegate.sim.placement.elastic import run as simulate
from tidegate.sim.placement.paradigms import Paradigm
from tidegate.view.pages.paper import Curve, Picture

PARADIGMS, QUICK_PARADIGMS = (STATIC, RESOURCE_CENTRIC, NAIVE, OURS), (STATIC, OURS)
TASKS = 8
"""Tasks of the transactor. With more, the most popular stock alone is more than a task's share, and
no route helps."""
SECONDS, QUICK_SECONDS, WARM_UP_S = 60.0, 20.0, 5.0
ROUNDS = 2
CLUSTER = "local-cluster[2,4,1024]"
SIMULATED: dict[str, Paradigm] = {NAIVE: "naive-ec", OURS: "executor-centric"}
PAPERS_STATE = {NAIVE: 13.9, OURS: 2.4}
PAPERS_REMOTE = {NAIVE: 235.3, OURS: 21.6}
"""Table 2, in MB/s."""

Found = Mapping[str, WorkDone]


def run_paradigms(asked: Asked) -> Findings:
    """Figure 16."""
    chosen = QUICK_PARADIGMS if asked.quick else PARADIGMS
    found = _measured(asked, LOCAL, chosen, QUICK_SECONDS if asked.quick else SECONDS)
    return Findings(
        compared=tuple(paradigm_rows(found)),
        aims=tuple(paradigm_aims(found)),
        pictures=(_throughput_picture(found), _latency_picture(found)),
        notes=(
            f"Made-up orders of {MEASURED_STOCKS} stocks; the paper's are not public. Popularity"
            f" changes every {5 * ORDERS_PER_S:,} orders.",
            f"{TASKS} tasks of the transactor wait {1000 * ORDER_S:g} ms for an order, one of each"
            " analytic 0.2 ms for a trade. The paper prints no times, but its transactor is the"
            f" bottleneck. Here its slowest task is {found[STATIC].busy_share:.0%} of a batch on"
            f" static routes, and {found[OURS].busy_share:.0%} with ours. The rest is the fixed"
            " cost of a batch with twelve operators, and the analytics.",
            "The most popular stock bounds what any route can do.",
            "Latency is the length of a batch. The paper's static executors queue for seconds.",
        ),
    )


def _measured(
    asked: Asked, master: str, paradigms: tuple[str, ...], seconds: float
) -> dict[str, WorkDone]:
    """The mean of some rounds, in which the paradigms take turns, after a warm-up."""
    runs: dict[str, list[WorkDone]] = {paradigm: [] for paradigm in paradigms}
    options = {"cache": CACHE} if master == CLUSTER else {}
    rounds = 1 if asked.quick else ROUNDS
    with spark_on(master) as spark:
        measure_exchange(spark, STATIC, tasks=TASKS, seconds=WARM_UP_S, options=options)
        for paradigm in asked.progress.each(list(in_turns(paradigms, rounds)), str):
            done = measure_exchange(spark, paradigm, tasks=TASKS, seconds=seconds, options=options)
            runs[paradigm].append(done)
            asked.say(
                f"{paradigm}: {done.mean_rows_per_s:,.0f} orders/s, {done.mean_latency_s:.2f} s,"
                f" delta {done.imbalance:.2f}, {done.moves} moves, {len(done.breaks_s)} restarts,"
                f" {done.previewed} of {done.batches} batches previewed in {done.preview_s:.2f} s,"
                f" {done.state_bytes_per_s / 1e3:,.1f} KB/s of state,"
                f" transactor {done.busy_share:.0%} of a batch"
            )
    return {paradigm: averaged(found) for paradigm, found in runs.items()}


def paradigm_rows(found: Found) -> list[Compared]:
    """What the text says of the figure, and ours."""
    static = found[STATIC].mean_rows_per_s
    said = dict.fromkeys((NAIVE, OURS), "about 2")
    shorter = dict.fromkeys((NAIVE, OURS), "static's less 1 to 2 orders of magnitude")
    rows = []
    for paradigm, done in found.items():
        over = round(done.mean_rows_per_s / max(static, 1e-9), 2)
        rows += [
            Compared(f"{paradigm}: orders/s", None, round(done.mean_rows_per_s)),
            Compared(f"{paradigm}: throughput over static", said.get(paradigm), over),
            Compared(
                f"{paradigm}: mean latency, s",
                shorter.get(paradigm),
                round(done.mean_latency_s, 2),
            ),
            Compared(f"{paradigm}: imbalance", None, round(done.imbalance, 2)),
            Compared(f"{paradigm}: transactor's share", None, round(done.busy_share, 2)),
        ]
    return rows


def paradigm_aims(found: Found) -> list[Aim]:
    """Ours is to be ahead of the others that were measured."""
    ours = found[OURS].mean_rows_per_s
    made = [
        at_least(f"throughput, ours over {name}", ours / max(done.mean_rows_per_s, 1e-9), 1.0)
        for name, done in found.items()
        if name in (STATIC, RESOURCE_CENTRIC)
    ]
    return [*made, replayed(found)]


def replayed(found: Found) -> Aim:
    """Whether the answers of every run are those of a sequential replay."""
    right = [done.exactly_once for done in found.values()]
    share = sum(right) / max(1, len(right))
    return Aim("runs whose answers equal a sequential replay", share, "= 1", all(right))


def _throughput_picture(found: Found) -> Picture:
    return every_second(found, "Throughput of the stock exchange", "orders per second")


def _latency_picture(found: Found) -> Picture:
    values = tuple(done.mean_latency_s for done in found.values())
    return Picture("Mean latency", "", "seconds", (Curve("ours", tuple(found), values),))


def run_costs(asked: Asked) -> Findings:
    """Table 2: state that moves on Spark, and remote data by simulation."""
    seconds = QUICK_SECONDS if asked.quick else SECONDS
    found = _measured(asked, CLUSTER, (NAIVE, OURS), seconds)
    simulated: dict[str, ElasticOutcome] = {}
    asked.progress.expect(len(SIMULATED))
    for name, paradigm in SIMULATED.items():
        asked.progress.step(f"simulating {name}")
        length = 30.0 if asked.quick else 75.0
        base = stocks(paradigm)
        nodes = nodes_of(base.nodes.count)
        simulated[name] = done = simulate(
            replace(base, nodes=nodes, seconds=length, warm_up_s=15.0)
        )
        asked.say(
            f"simulated, {name}: {done.state_bytes_per_s / 1e6:.2f} MB/s of state,"
            f" {done.remote_bytes_per_s / 1e6:.1f} MB/s of remote data"
        )
    return Findings(
        compared=tuple(cost_rows(found, simulated)),
        aims=tuple(cost_aims(found, simulated)),
        notes=(
            "On Spark: state that executors fetched because they did not have it, on two executors"
            " of four cores. The books of 1000 stocks are a few MB, so the rates are small.",
            "On Spark a shuffle sends rows to the tasks of their shards wherever these are; there"
            " are no remote tasks of an executor. Remote data is simulated, on 32 nodes.",
            "Naive moves spread all shards anew at each change. Spark's tasks are still renumbered"
            " so that as many shards as possible stay, which helps the naive way too.",
        ),
    )


def cost_rows(found: Found, simulated: Mapping[str, ElasticOutcome]) -> list[Compared]:
    """The table, on Spark and simulated."""
    rows = []
    for name in (NAIVE, OURS):
        state = simulated[name].state_bytes_per_s / 1e6
        remote = simulated[name].remote_bytes_per_s / 1e6
        measured = found[name].state_bytes_per_s / 1e6
        rows += [
            Compared(f"{name}: state, MB/s, on Spark", PAPERS_STATE[name], round(measured, 4)),
            Compared(f"{name}: state, MB/s, simulated", PAPERS_STATE[name], round(state, 2)),
            Compared(
                f"{name}: remote data, MB/s, simulated", PAPERS_REMOTE[name], round(remote, 1)
            ),
            Compared(f"{name}: shards moved, on Spark", None, found[name].moves),
        ]
    return rows


def cost_aims(found: Found, simulated: Mapping[str, ElasticOutcome]) -> list[Aim]:
    """The ratios of the table: 5.8 and 10.9 in the paper."""
    naive, ours = simulated[NAIVE], simulated[OURS]
    return [
        at_least(
            "state, naive over ours, on Spark",
            found[NAIVE].state_bytes_per_s / max(found[OURS].state_bytes_per_s, 1.0),
            2.0,
        ),
        at_least(
            "state, naive over ours, simulated",
            naive.state_bytes_per_s / max(ours.state_bytes_per_s, 1.0),
            5.0,
        ),
        at_least(
            "remote data, naive over ours, simulated",
            naive.remote_bytes_per_s / max(ours.remote_bytes_per_s, 1.0),
            10.0,
        ),
        replayed(found),
    ]
