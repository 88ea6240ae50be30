"""Table 3: throughput and scheduling time on 8, 16 and 32 nodes.

The scheduling time is real: the simulation decides by the same allocator and the same placement as
a run on Spark would, and each decision is timed. The throughput is simulated.
"""

from collections.abc import Mapping
from dataclasses import replace

from tidegate.benching import Aim, at_least, at_most
from tidegate.papers.elasticutor.measured_costs import nodes_of
from tidegate.papers.figure import Asked, Compared, Findings
from tidegate.sim.placement.elastic import ElasticOutcome, Experiment, stocks
from tidegate.sim.placement.elastic import run as simulate
from tidegate.sim.placement.key_load import Stocks
from tidegate.view.pages.paper import Curve, Picture

PAPERS_THROUGHPUT = {8: 66.6, 16: 121.3, 32: 218.6}
"""Thousands of orders a second."""
PAPERS_SCHEDULING_MS = {8: 4.1, 16: 5.2, 32: 5.7}
SECONDS, QUICK_SECONDS, WARM_UP_S = 75.0, 30.0, 15.0


def experiment(nodes: int, seconds: float) -> Experiment:
    """The stock exchange on some nodes: executors in proportion, two per node."""
    base = stocks("executor-centric")
    share = nodes / base.nodes.count
    operators = tuple(
        replace(one, executors=max(1, round((one.executors or 1) * share)))
        for one in base.operators
    )
    return replace(
        base,
        operators=operators,
        nodes=nodes_of(nodes),
        keys=Stocks(),
        seconds=seconds,
        warm_up_s=WARM_UP_S,
    )


def run(asked: Asked) -> Findings:
    """Simulate the three sizes."""
    found: dict[int, ElasticOutcome] = {}
    sizes = tuple(PAPERS_THROUGHPUT)
    for nodes in asked.progress.each(sizes, lambda one: f"simulating {one} nodes"):
        seconds = QUICK_SECONDS if asked.quick else SECONDS
        found[nodes] = done = simulate(experiment(nodes, seconds))
        asked.say(
            f"{nodes} nodes: {done.throughput:,.0f} orders/s, {done.scheduling_ms:.2f} ms a"
            " decision"
        )
    return Findings(
        compared=tuple(compared(found)),
        aims=tuple(aims(found)),
        pictures=(_picture(found),),
        notes=(
            "Throughput is simulated: 1.08 ms of work for an order is our choice, made from the"
            " paper's throughput. Scheduling time is measured on this machine, in the simulation.",
            "Popularity of 1,500 stocks is made up; the paper's orders are not public. A stock is"
            " served by one core at a time, so more nodes help less.",
        ),
    )


def compared(found: Mapping[int, ElasticOutcome]) -> list[Compared]:
    """The table."""
    rows = []
    for nodes, done in found.items():
        rate, taken = round(done.throughput / 1e3, 1), round(done.scheduling_ms, 2)
        rows.append(Compared(f"{nodes} nodes: 1000 orders/s", PAPERS_THROUGHPUT[nodes], rate))
        rows.append(Compared(f"{nodes} nodes: scheduling, ms", PAPERS_SCHEDULING_MS[nodes], taken))
    return rows


def aims(found: Mapping[int, ElasticOutcome]) -> list[Aim]:
    """A decision takes no longer than the paper's, and four times the nodes do most of the work."""
    slowest = max(done.scheduling_ms / PAPERS_SCHEDULING_MS[nodes] for nodes, done in found.items())
    grown = found[32].throughput / max(found[8].throughput, 1e-9)
    theirs = PAPERS_THROUGHPUT[32] / PAPERS_THROUGHPUT[8]
    return [
        at_most("scheduling time over the paper's, highest", slowest, 1.0),
        at_least("throughput, 32 over 8 nodes, as a share of the paper's", grown / theirs, 0.9),
    ]


def _picture(found: Mapping[int, ElasticOutcome]) -> Picture:
    nodes = tuple(float(one) for one in found)
    ours = tuple(done.throughput / 1e3 for done in found.values())
    theirs = tuple(PAPERS_THROUGHPUT[one] for one in found)
    lines = (Curve("simulated", nodes, ours), Curve("Elasticutor", nodes, theirs, paper=True))
    return Picture("Throughput", "nodes", "1000 orders per second", lines)
