"""A cold start of 11 s against a target of 2 s: no reason for more cores, unless the load is one.

The first batch takes 11 s longer than it would on warm workers, and so does the first one on new
executors. The controllers are those that run on Spark.
"""

from typing import Any

import pytest

from tests.helpers.pipeline_worlds import world
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.target import Target
from tidegate.sim.microbatch.outcome import Outcome
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.workload.profile import steps

COLD_S = 11.0
TARGET_S = 2.0
LIGHT, HEAVY = 300.0, 4000.0
"""Rows per second at a millisecond each: a third of a core's work, and that of four cores."""
BEGINS_WITH = 2
ALL = ("latency", "drs", "flow", "mst-7", "priced-capacity")


def run(rate: float, policy: str = "latency", **changes: Any) -> Outcome:
    began = world(
        steps([(0, rate)]), seconds=60.0, cores=BEGINS_WITH, prompt=False, cold_s=COLD_S, **changes
    )
    assembly = Assembly(target=Target(TARGET_S), bounds=Bounds(1, 12), policy=policy)
    return simulate(began, new_controller(assembly))


def test_the_first_batch_is_as_long_as_it_is_meant_to_be() -> None:
    (first, *later) = [
        batch
        for record in run(LIGHT).records
        for segment in record.measurement.segments
        for batch in segment.batches
    ]
    assert first.duration_s > COLD_S and first.outlier == "first"
    assert max(batch.duration_s for batch in later) < COLD_S
    assert all(batch.outlier is None for batch in later)


@pytest.mark.parametrize("policy", ALL)
def test_a_cold_start_does_not_scale_out(policy: str) -> None:
    outcome = run(LIGHT, policy)
    assert max(outcome.cores) == BEGINS_WITH, outcome.changes()
    assert outcome.within(TARGET_S, after_s=20) == 1.0


def test_it_says_what_the_first_batch_was_long_for() -> None:
    reasons = [record.decision.reason for record in run(LIGHT).records]
    assert any(
        reason.startswith("the first batch took 11.3") and reason.endswith("2 cores are kept")
        for reason in reasons
    )


@pytest.mark.parametrize("policy", ALL)
def test_an_overload_at_a_cold_start_scales_out(policy: str) -> None:
    assert max(run(HEAVY, policy).cores) >= 5


def test_an_overload_is_answered_as_soon_as_the_cold_batch_has_ended() -> None:
    """44,000 rows wait then, and they need more than two cores whoever is warm."""
    outcome = run(HEAVY)
    more = next(record for record in outcome.records if record.acted and record.decision.cores)
    assert more.tick == 12
    assert more.decision.cores is not None and more.decision.cores >= 8
    assert "rows wait now" in more.decision.reason


def test_a_load_that_needs_little_more_gets_little_more() -> None:
    """1,200 rows/s are 1.2 cores' work, and 13,000 rows wait: three cores drain them in 5 s."""
    changes = [record for record in run(1200.0).records if record.acted and record.decision.cores]
    assert changes[0].tick == 12
    assert changes[0].decision.cores in (3, 4), "the overrun alone would have called for twelve"


def test_no_further_executors_while_the_first_batch_on_new_ones_runs() -> None:
    """The load doubles, cores are granted, and the first batch on them takes 11 s longer."""
    began = world(
        steps([(0, 800.0), (30, 1600.0)]),
        seconds=50.0,
        cores=BEGINS_WITH,
        grant_s=3.0,
        cold_executor_s=COLD_S,
    )
    assembly = Assembly(target=Target(TARGET_S), bounds=Bounds(1, 12))
    records = simulate(began, new_controller(assembly)).records
    granted = next(r.tick for r in records if r.measurement.cores_granted > BEGINS_WITH)
    cold = next(
        r.tick
        for r in records
        for batch in r.measurement.segments[0].batches
        if batch.outlier == "new executors"
    )
    assert cold - granted >= COLD_S
    meanwhile = [r for r in records if granted < r.tick < cold]
    assert all(r.decision.cores is None for r in meanwhile)
    assert meanwhile[-1].decision.reason == "the first batch on new cores still runs"
    assert meanwhile[-1].measurement.backlog_rows > 10_000
