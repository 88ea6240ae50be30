"""The controller of Spark in a backtest: judged and paid for as the other policies are."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control.assemble import new_controller
from tidegate.control.names import PIPELINE_POLICIES
from tidegate.errors import AskedWrongly
from tidegate.models.capacity.measured import CapacitySample, MeasuredCapacity
from tidegate.sim.capacity.applications import APPLICATIONS
from tidegate.sim.capacity.backtest import (
    TraceForecasts,
    grid,
    policies,
    run_one,
    runs_on_pipeline,
    score,
)
from tidegate.sim.capacity.cluster import Cluster, cluster
from tidegate.sim.capacity.measured_application import MeasuredApplication
from tidegate.sim.capacity.on_pipeline import (
    PipelineSettings,
    assembly_for,
    pipeline_world,
    run_on_pipeline,
)
from tidegate.sim.microbatch.pipeline import PipelineSimulation

MINUTES = np.arange(150)
TRACE = 3000.0 + 1500.0 * np.sin(MINUTES / 25.0)
GREP = APPLICATIONS["grep"]


def body(trace: np.ndarray = TRACE, seed: int = 0) -> Cluster:
    return cluster(trace, GREP, seed)


def test_static_cores_have_the_qos_and_cost_of_static_machines() -> None:
    """The same cores all the time: eq. 22 and 23 do not depend on which body counts."""
    one = body()
    machines = one.needed()
    static = run_on_pipeline("static", one, PipelineSettings(tick_s=30.0))
    start = 10  # it starts with what the first minute needs, and its cores take two minutes
    expected = one.capacity(np.full(len(machines), machines.max())) > one.load
    assert np.array_equal(static.satisfied[start:], expected[start:].astype(float))
    assert np.all(static.machines[start:] == machines.max())
    assert static.capacity[start:] == pytest.approx(
        one.capacity(np.full(len(machines), machines.max()))[start:]
    )


def test_a_pipeline_sustains_what_the_machines_do() -> None:
    """Overloaded on fixed cores, it processes tau rows per second, less the batches' overhead."""
    one = dataclasses.replace(body(), load=np.full(30, 30.0), capacity_noise=np.ones(3))
    world = dataclasses.replace(
        pipeline_world(one, PipelineSettings()), cores=40, seconds=1800.0, noise=0.0
    )
    simulation = PipelineSimulation(world)
    rows = sum(
        simulation.advance(60.0 * (minute + 1)).processed_rate * 60.0 for minute in range(30)
    )
    tau = one.mean_capacity[39] * 1000.0
    # What the batch that still runs has done is not counted yet.
    (running,) = simulation._running
    assert running.batch is not None
    rows += (
        running.batch.rows
        * (1800.0 - running.batch.started_s)
        / (running.batch.ended_s - running.batch.started_s)
    )
    assert rows < 1800.0 * tau
    assert rows == pytest.approx(1800.0 * tau, rel=0.05)


@given(name=st.sampled_from(["latency", "drs", "flow", "threshold", "priced-capacity", "mst-7"]))
@settings(max_examples=6)
def test_the_controller_is_the_one_that_spark_assembles(name: str) -> None:
    assembly = assembly_for(name, body(), PipelineSettings(target_s=7.0, tick_s=5.0))
    assert new_controller(assembly).policy.name == name
    assert assembly.target.latency_s == 7.0
    assert assembly.tick_s == 5.0
    assert assembly.bounds.most == GREP.max_machines


def test_the_latency_policy_keeps_its_target_and_the_qos_of_machines() -> None:
    """Cores take two minutes to come, as machines do."""
    one = body()
    run = run_on_pipeline("latency", one, PipelineSettings(tick_s=20.0))
    found = score("latency", 0, one, run)
    assert found.within_target is not None and found.within_target > 90.0
    assert found.qos > 95.0
    assert 1.0 < found.cost_vs_truth < 1.6
    assert found.max_backlog > 0.0


def test_policies_of_both_bodies_stand_side_by_side() -> None:
    names = [*policies("latency"), *policies("priced-capacity"), *policies("pipeline:mst-priced")]
    assert names == ["latency", "priced-capacity", "pipeline:priced-capacity"]
    assert [runs_on_pipeline(name) for name in names] == [True, False, True]
    shared = TraceForecasts(TRACE[:80])
    quick = PipelineSettings(tick_s=60.0)
    scores = list(grid(shared, names[:2], [GREP], 1, 0.95, processes=1, pipeline=quick))
    assert [one.within_target is None for one in scores] == [False, True]
    twice = list(grid(shared, names[:2] * 2, [GREP], 1, 0.95, processes=2, pipeline=quick))
    assert twice == scores * 2


@pytest.mark.parametrize("name", PIPELINE_POLICIES)
def test_every_policy_of_a_pipeline_can_be_backtested(name: str) -> None:
    shared = TraceForecasts(TRACE[:40])
    (asked,) = policies(f"pipeline:{name}")
    _, run = run_one(asked, GREP, 0, 0.95, shared, pipeline=PipelineSettings(tick_s=30.0))
    assert len(run.machines) == 40
    assert run.within_target is not None


def test_wrong_names_and_ticks_are_refused() -> None:
    with pytest.raises(AskedWrongly, match="did you mean 'latency'"):
        policies("latenzy")
    with pytest.raises(AskedWrongly, match="there is no policy"):
        policies("pipeline:hpa")
    with pytest.raises(AskedWrongly, match="does not divide a minute"):
        PipelineSettings(tick_s=7.0)


def measured(noise: float = 0.02) -> MeasuredCapacity:
    return MeasuredCapacity(
        pipeline="ads",
        samples=tuple(
            CapacitySample(cores=m, rows_per_s=1000.0 * m * factor)
            for m in (1, 2, 4, 8, 16)
            for factor in (1.0 - noise, 1.0 + noise)
        ),
        fixed_s=0.2,
    )


def test_a_measured_pipeline_takes_the_place_of_an_application() -> None:
    app = MeasuredApplication(measured())
    assert app.mean() == pytest.approx(1000.0 * np.arange(1, 17))
    assert app.noise == pytest.approx(0.02 * np.sqrt(2.0))
    assert app.peak == pytest.approx(16_000.0 / 1.04)
    assert app.name == "ads"
    shared = TraceForecasts(TRACE)
    for name in ("priced-capacity", "7:MST+UA+OL;ARMA", "latency"):
        one, run = run_one(name, app, 0, 0.95, shared, pipeline=PipelineSettings(tick_s=30.0))
        found = score(name, 0, one, run)
        assert found.qos > 80.0, name
        assert found.cost_vs_truth < 2.0, name


def test_a_measured_pipeline_of_mere_overhead_is_refused() -> None:
    sample = CapacitySample(cores=1, rows_per_s=10.0, batch_s=0.3)
    with pytest.raises(AskedWrongly, match="hardly anything but overhead; measure larger ones"):
        MeasuredApplication(MeasuredCapacity(pipeline="ads", samples=(sample,), fixed_s=0.29))


def test_what_each_task_of_a_measured_pipeline_costs_is_simulated() -> None:
    app = MeasuredApplication(dataclasses.replace(measured(), per_task_s=0.05))
    one = cluster(TRACE, app, 0)
    (segment,) = pipeline_world(one, PipelineSettings()).segments
    assert (segment.fixed_s, segment.per_task_s) == (0.2, 0.05)
    told = assembly_for("mst-7", one, PipelineSettings()).capacity
    assert told is not None and told.per_task_s == 0.05
    within = dict(told.within(np.inf))
    assert within[16] == pytest.approx(dict(one.training)[16], rel=1e-9), "nothing is lost"


def test_machines_still_run_as_before() -> None:
    one = body()
    _, run = run_one("static-peak", GREP, 0, 0.95, TraceForecasts(TRACE))
    assert run.within_target is None
    assert run.machines[10:].max() == one.needed().max()
