"""The paradigms in the simulator: what must hold of the mechanism, whatever the figures."""

from dataclasses import replace

import numpy as np
import pytest

from tidegate.errors import AskedWrongly
from tidegate.sim.placement.elastic import Experiment, micro, run, stocks
from tidegate.sim.placement.fluid import QUEUE_S, Fluid
from tidegate.sim.placement.key_load import ShuffledZipf, Stocks
from tidegate.sim.placement.nodes import Nodes
from tidegate.sim.placement.paradigms import Paradigm, ShardGroups
from tidegate.sim.placement.split_and_merge import SimulatedRegrouping


def small(paradigm: Paradigm, omega: float = 2.0) -> Experiment:
    """8 nodes of 8 cores, so that a run takes a moment."""
    return replace(
        micro(omega, paradigm, keys=2000),
        nodes=Nodes(count=8, cores_each=8),
        executors=8,
        shards_each=128,
        shards=1024,
        seconds=45.0,
        warm_up_s=15.0,
    )


def test_without_change_both_elastic_paradigms_beat_static_and_settle() -> None:
    static, central, elastic = (
        run(small(paradigm, omega=0.0))
        for paradigm in ("static", "resource-centric", "executor-centric")
    )
    assert static.moves == 0 and static.state_bytes_per_s == 0.0
    assert elastic.throughput > 1.1 * static.throughput
    assert central.throughput > 1.1 * static.throughput
    assert elastic.state_bytes_per_s == 0.0, "settled: nothing moves any more"


def test_shuffles_stop_the_resource_centric_one_and_not_the_executor_centric_one() -> None:
    central = run(small("resource-centric", omega=8.0))
    elastic = run(small("executor-centric", omega=8.0))
    assert min(central.series[15:]) < 0.2 * max(central.series), "everything stops"
    assert min(elastic.series[15:]) > 0.2 * max(elastic.series)
    assert elastic.throughput > 1.2 * central.throughput


def test_naive_moves_more_state_and_more_data() -> None:
    naive, elastic = run(small("naive-ec")), run(small("executor-centric"))
    assert naive.remote_bytes_per_s > 2.0 * elastic.remote_bytes_per_s
    assert naive.state_bytes_per_s > elastic.state_bytes_per_s


def test_a_patient_source_shows_what_a_stop_costs() -> None:
    """Under a load that the executor-centric one carries with ease."""
    stopped, elastic = (
        run(replace(small(paradigm, omega=8.0), offered=0.4, patient=True))
        for paradigm in ("resource-centric", "executor-centric")
    )
    assert elastic.throughput == pytest.approx(0.4 * 64 / 0.001, rel=0.02)
    assert stopped.latency_s > 5.0 * elastic.latency_s


def test_a_run_is_the_same_again() -> None:
    first, again = (run(replace(small("naive-ec"), seconds=20.0)) for _ in range(2))
    assert first.series == again.series and first.moves == again.moves


def test_the_stock_exchange_has_twelve_operators_that_share_cores() -> None:
    what = replace(stocks("executor-centric"), shards_each=8, nodes=Nodes(count=16))
    outcome = run(replace(what, seconds=12.0, warm_up_s=5.0))
    assert len(what.operators) == 12
    assert 0.4 * 128 / 0.00108 < outcome.throughput <= 128 / 0.00108


def test_an_unknown_paradigm_is_said() -> None:
    with pytest.raises(AskedWrongly, match="did you mean 'static'"):
        run(replace(small("static"), paradigm="statik"))  # type: ignore[arg-type]


def test_back_pressure_keeps_every_queue_within_its_bound_and_loses_nothing() -> None:
    route = np.array([0, 0, 1])
    fluid = Fluid.of(route, np.full(3, 0.001), np.ones(3), cores=2)
    per_tuple = np.array([0.5, 0.4, 0.1])
    emitted = done = 0.0
    for step in range(200):
        tuples = fluid.emission(per_tuple, 500.0, 0.1)
        fluid.arrive(tuples * per_tuple, 0.1 * step)
        emitted += tuples
        done += fluid.serve(np.ones(2), 0.1).sum()
        assert fluid.queued_s().max() <= QUEUE_S + 1e-9
    assert emitted == pytest.approx(done + fluid.pending.sum())
    # The fullest core has 0.9 of the stream and does 1,000 a second.
    assert done / 20.0 == pytest.approx(1000 / 0.9, rel=0.06)


def test_a_moving_shard_waits_and_arrives_at_its_new_core() -> None:
    fluid = Fluid.of(np.array([0, 1]), np.full(2, 0.001), np.ones(2), cores=2)
    fluid.move(np.array([0]), np.array([1]), np.array([0.25]))
    for step in range(3):
        fluid.arrive(np.array([10.0, 10.0]), 0.1 * step)
        fluid.serve(np.ones(2), 0.1)
    assert fluid.waiting.tolist() == [30.0, 0.0] and fluid.route.tolist() == [0, 1]
    fluid.arrive(np.array([10.0, 10.0]), 0.3)
    assert fluid.waiting.tolist() == [0.0, 0.0] and fluid.route.tolist() == [1, 1]
    assert fluid.pending[0] == 40.0


def test_what_leaves_a_node_goes_one_after_the_other() -> None:
    nodes = Nodes(bandwidth_bytes_per_s=10.0)
    taken = nodes.transfer_s(np.array([1, 0, 1]), np.array([10.0, 20.0, 30.0]))
    assert taken.tolist() == [1.0, 2.0, 4.0]


def test_key_shares_change_with_their_era_and_add_up() -> None:
    zipf = ShuffledZipf(keys=100, shuffles_per_minute=6.0)
    assert [zipf.era(at_s) for at_s in (0.0, 9.9, 10.0, 20.0)] == [0, 0, 1, 2]
    assert sorted(zipf.shares(0)) == sorted(zipf.shares(1))
    assert zipf.shares(0).tolist() != zipf.shares(1).tolist()
    exchange = Stocks(keys=50)
    assert exchange.shares(3).sum() == pytest.approx(1.0)
    assert exchange.shares(3).tolist() == exchange.shares(3).tolist()
    assert exchange.shares(3).tolist() != exchange.shares(4).tolist()


def test_an_executor_that_outgrew_its_node_is_split_until_data_stays_at_home() -> None:
    """One executor for 64 cores of 8 nodes: 8 KB tuples cross the network for ever."""
    one = replace(
        micro(0.0, "executor-centric", tuple_bytes=8192.0, keys=2000),
        nodes=Nodes(count=8, cores_each=8),
        executors=1,
        shards_each=1024,
        seconds=45.0,
        warm_up_s=25.0,
    )
    alone, split = run(one), run(replace(one, regroup_every_s=4.0))
    assert alone.executors == 1 and 8 <= split.executors <= 16
    assert split.throughput > 1.3 * alone.throughput
    assert split.remote_bytes_per_s < 0.2 * alone.remote_bytes_per_s


def test_idle_executors_are_merged_within_their_operator() -> None:
    operators = tuple(replace(micro(0.0, "static").operators[0], name=name) for name in "ab")
    many = Experiment(
        operators=operators,
        keys=ShuffledZipf(keys=2000, shuffles_per_minute=0.0),
        nodes=Nodes(count=4, cores_each=16),
        offered=0.05,
        executors=16,
        shards_each=16,
        seconds=30.0,
        warm_up_s=10.0,
    )
    outcome = run(replace(many, regroup_every_s=5.0))
    assert run(many).executors == 32
    assert 8 <= outcome.executors < 32, "at least one for each operator and node"
    assert outcome.throughput == pytest.approx(0.05 * 64 / 0.002, rel=0.02)


def test_regrouping_keeps_every_shard_and_every_core_whose_it_was() -> None:
    groups = ShardGroups(
        Nodes(count=4, cores_each=2),
        np.repeat([0, 1, 2], 8),
        np.full(3, 0.001),
        np.full(3, 100.0),
        1024.0,
        operator_of=np.array([0, 1, 1]),
    )
    groups.begin(np.array([6.0, 0.1, 0.1]))
    groups.home[1:] = 3
    cores = sorted(core for owned in groups.owned for core in owned)
    assert len(groups.owned[0]) > 2
    regrouping = SimulatedRegrouping(groups, every_s=1.0)
    busy = np.repeat([0.7, 0.01, 0.01], 8)
    regrouping.look(0.0, busy)
    assert len(groups.members) == 3, "it waits for its interval"
    regrouping.look(1.0, busy)
    assert groups.operator_of.tolist() == [0, 1, 0]
    assert sorted(core for owned in groups.owned for core in owned) == cores
    assert [len(shards) for shards in groups.members] == [4, 16, 4]
    for group, shards in enumerate(groups.members):
        assert np.array_equal(np.flatnonzero(groups.group_of == group), shards)
    assert groups.home[0] != groups.home[2]


def test_one_boundary_between_batches_moves_all_shards_of_a_decision() -> None:
    """One after the other, shards that wait 30 ms each would stop an executor for seconds."""
    nodes = Nodes(count=8, handshake_s=0.03)
    exchange = replace(stocks("executor-centric"), nodes=nodes, seconds=40.0, warm_up_s=15.0)
    operators = tuple(replace(one, executors=1) for one in exchange.operators)
    apart = replace(exchange, operators=operators)
    together = replace(apart, nodes=replace(nodes, together=True))
    assert run(together).throughput > 1.5 * run(apart).throughput


def test_a_restart_of_the_resource_centric_way_may_move_all_shards_at_once() -> None:
    apart = small("resource-centric", omega=8.0)
    together = replace(apart, nodes=replace(apart.nodes, together=True))
    assert run(together).throughput > 1.1 * run(apart).throughput
