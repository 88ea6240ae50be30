"""Table 3: throughput and scheduling time on 8, 16 and 32 nodes.

The scheduling time is real: the simulation decides by the same allocator and the same placement as
a run on Spark would, and each decision is timed. The throughput is simulated, twice: the paper
prints no costs, so those that its own throughput allows are used first, and then those that our
operators have on this machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tidegate.apps.sse.application import TRANSACTOR
from tidegate.apps.sse.order_costs import order_costs
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


def experiment(nodes: int, seconds: float, costs_s: Sequence[float] | None = None) -> Experiment:
    """The stock exchange on some nodes: executors in proportion, two per node.

    `costs_s` are the seconds per order of the transactor and of each analytic; None: those that
    are made from the paper's throughput.
    """
    base = stocks("executor-centric")
    share = nodes / base.nodes.count
    operators = tuple(
        replace(one, executors=max(1, round((one.executors or 1) * share)), work_s=work_s)
        for one, work_s in zip(
            base.operators, costs_s or [one.work_s for one in base.operators], strict=True
        )
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
    """Measure what our operators take for an order, and simulate the three sizes."""
    found: dict[int, ElasticOutcome] = {}
    measured: dict[int, ElasticOutcome] = {}
    sizes = tuple(PAPERS_THROUGHPUT)
    asked.progress.expect(1 + 2 * len(sizes))
    asked.progress.step("what an order takes here")
    costs = order_costs()
    asked.say(costs_said(costs))
    seconds = QUICK_SECONDS if asked.quick else SECONDS
    for nodes in sizes:
        asked.progress.step(f"simulating {nodes} nodes")
        found[nodes] = done = simulate(experiment(nodes, seconds))
        asked.progress.step(f"simulating {nodes} nodes with measured costs")
        measured[nodes] = simulate(experiment(nodes, seconds, [*costs.values()]))
        asked.say(
            f"{nodes} nodes: {done.throughput:,.0f} orders/s, {done.scheduling_ms:.2f} ms a"
            f" decision; with measured costs {measured[nodes].throughput:,.0f} orders/s"
        )
    return Findings(
        compared=(*compared(found), *measured_rows(measured, costs)),
        aims=tuple(aims(found)),
        pictures=(_picture(found, measured),),
        notes=(
            "Throughput is simulated. 1.08 ms of work for an order is our choice, made from the"
            " paper's throughput, so the first rows tell how it grows and not how high it is."
            " Scheduling time is measured on this machine, in the simulation.",
            f"{costs_said(costs)} Nothing is stretched: it is CPU time for whole columns, with"
            " reading and writing state, without what Spark needs to plan a batch and to send its"
            " rows. With these costs the network between executors and their remote tasks bounds"
            " the throughput, and hardly a core is busy.",
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


def measured_rows(
    found: Mapping[int, ElasticOutcome], costs: Mapping[str, float]
) -> list[Compared]:
    """The table's throughput with the costs that our operators have here."""
    first, *analytics = costs.values()
    return [
        Compared("transactor, us of CPU for an order, measured", None, round(1e6 * first, 2)),
        Compared(
            "eleven analytics, us of CPU for an order, measured",
            None,
            round(1e6 * sum(analytics), 2),
        ),
        *(
            Compared(
                f"{nodes} nodes, with measured costs: 1000 orders/s",
                PAPERS_THROUGHPUT[nodes],
                round(done.throughput / 1e3, 1),
            )
            for nodes, done in found.items()
        ),
    ]


def costs_said(costs: Mapping[str, float]) -> str:
    """What an order takes, in a sentence."""
    return (
        f"Our operators take {1e6 * sum(costs.values()):.1f} us for an order on this machine, of"
        f" which the transactor takes {1e6 * costs[TRANSACTOR]:.1f}."
    )


def aims(found: Mapping[int, ElasticOutcome]) -> list[Aim]:
    """A decision takes no longer than the paper's, and four times the nodes do most of the work."""
    slowest = max(done.scheduling_ms / PAPERS_SCHEDULING_MS[nodes] for nodes, done in found.items())
    grown = found[32].throughput / max(found[8].throughput, 1e-9)
    theirs = PAPERS_THROUGHPUT[32] / PAPERS_THROUGHPUT[8]
    return [
        at_most("scheduling time over the paper's, highest", slowest, 1.0),
        at_least("throughput, 32 over 8 nodes, as a share of the paper's", grown / theirs, 0.9),
    ]


def _picture(
    found: Mapping[int, ElasticOutcome], measured: Mapping[int, ElasticOutcome]
) -> Picture:
    nodes = tuple(float(one) for one in found)
    ours = tuple(done.throughput / 1e3 for done in found.values())
    real = tuple(done.throughput / 1e3 for done in measured.values())
    theirs = tuple(PAPERS_THROUGHPUT[one] for one in found)
    lines = (
        Curve("simulated, 1.08 ms an order", nodes, ours),
        Curve("simulated, with measured costs", nodes, real),
        Curve("Elasticutor", nodes, theirs, paper=True),
    )
    return Picture("Throughput", "nodes", "1000 orders per second", lines, logarithmic=True)
