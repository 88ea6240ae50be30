"""Figure 16 and tables 2 and 3 from made-up runs, and the list of all figures."""

from dataclasses import replace

import pytest

from tests.unit.papers.elasticutor.runs import done
from tidegate.apps.paradigms import NAIVE, OURS, RESOURCE_CENTRIC, STATIC
from tidegate.apps.sse.application import OPERATORS
from tidegate.papers.elasticutor import cluster_sizes, exchange
from tidegate.papers.elasticutor.figures import FIGURES
from tidegate.sim.placement.elastic import ElasticOutcome

PLAIN = ElasticOutcome(100.0, 0.1, 1e6, 1e7, 5, 32, 2.0, (100.0,))


def test_the_paradigms_are_compared_with_static() -> None:
    found = {STATIC: done(100.0), RESOURCE_CENTRIC: done(90.0), NAIVE: done(130.0), OURS: done(150)}
    rows = {row.name: row for row in exchange.paradigm_rows(found)}
    assert rows["ours: throughput over static"].ours == 1.5
    assert rows["static: throughput over static"].paper is None
    assert "orders of magnitude" in str(rows["ours: mean latency, s"].paper)
    assert rows["resource-centric: mean latency, s"].paper is None
    assert all(aim.met for aim in exchange.paradigm_aims(found))
    found[OURS] = done(95.0, exactly_once=False)
    assert [aim.met for aim in exchange.paradigm_aims(found)] == [False, True, False]


def test_naive_moves_cost_more() -> None:
    found = {NAIVE: done(1.0, state_bytes_per_s=5e4), OURS: done(1.0, state_bytes_per_s=1e4)}
    simulated = {
        NAIVE: replace(PLAIN, state_bytes_per_s=1e7, remote_bytes_per_s=2e8),
        OURS: PLAIN,
    }
    assert all(aim.met for aim in exchange.cost_aims(found, simulated))
    rows = {row.name: row for row in exchange.cost_rows(found, simulated)}
    assert rows["naive: state, MB/s, on Spark"].ours == 0.05
    assert rows["ours: remote data, MB/s, simulated"].paper == 21.6


def test_clusters_have_executors_in_proportion() -> None:
    for nodes in cluster_sizes.PAPERS_THROUGHPUT:
        made = cluster_sizes.experiment(nodes, 30.0)
        count = sum(one.executors or 0 for one in made.operators)
        assert made.nodes.cores == 8 * nodes and 12 <= count <= 2 * nodes
    found = {nodes: replace(PLAIN, throughput=nodes * 1e3) for nodes in (8, 16, 32)}
    assert all(aim.met for aim in cluster_sizes.aims(found))
    assert cluster_sizes.compared(found)[0].ours == 8.0


def test_measured_costs_take_the_place_of_those_from_the_papers_throughput() -> None:
    costs = dict(zip(OPERATORS, [2e-6, *[1e-7] * 11], strict=True))
    made = cluster_sizes.experiment(16, 30.0, [*costs.values()])
    assert [one.work_s for one in made.operators] == [*costs.values()]
    chosen = cluster_sizes.experiment(16, 30.0)
    assert sum(one.work_s for one in chosen.operators) == pytest.approx(1.08e-3)
    found = {nodes: replace(PLAIN, throughput=nodes * 1e5) for nodes in (8, 16, 32)}
    rows = {row.name: row for row in cluster_sizes.measured_rows(found, costs)}
    assert rows["transactor, us of CPU for an order, measured"].ours == 2.0
    assert rows["eleven analytics, us of CPU for an order, measured"].ours == 1.1
    last = rows["32 nodes, with measured costs: 1000 orders/s"]
    assert (last.paper, last.ours) == (218.6, 3200.0)
    assert "3.1 us for an order" in cluster_sizes.costs_said(costs)


def test_every_figure_has_a_run_and_a_name_of_its_own() -> None:
    assert len({one.figure for one in FIGURES}) == len(FIGURES) == 11
    assert all(one.minutes > 0.0 for one in FIGURES)
    assert all(one.stretched for one in FIGURES if one.body == "spark")
