"""MST's policies on a pipeline: the paper's equations by brute force, learning, restarts."""

import dataclasses
import json
import math
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.pipeline_worlds import measured
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.controller import Controller
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.models.capacity.choice import choose
from tidegate.models.capacity.measured import CapacitySample, MeasuredCapacity

BOUNDS = Bounds(1, 32)
TARGET_S = 1.5
SAMPLES = [(m, 100.0 * m**0.9 * (1 + e)) for m in (1, 2, 4, 8, 16, 32) for e in (-0.03, 0.02)]
MEASURED = MeasuredCapacity(
    pipeline="held", samples=tuple(CapacitySample(cores=m, rows_per_s=r) for m, r in SAMPLES)
)


def controller(policy: str, capacity: MeasuredCapacity | None = None) -> Controller:
    return new_controller(
        Assembly(target=Target(TARGET_S), bounds=BOUNDS, policy=policy, capacity=capacity)
    )


def tick(number: int, rate: float, cores: int) -> Measurement:
    """A tick in which no batch ended, so that nothing is learned."""
    return dataclasses.replace(measured(number, rate=rate, cores=cores, batches=False), grant_s=0.0)


def run(policy: str, rates: list[float], capacity: MeasuredCapacity | None = MEASURED) -> int:
    """The cores at the end."""
    brain, cores = controller(policy, capacity), 1
    for number, rate in enumerate(rates):
        found = brain.tick(tick(number, rate, cores)).decision
        cores = cores if found.cores is None else found.cores
    return cores


@given(rate=st.floats(10.0, 3000.0), qos=st.sampled_from([0.5, 0.9, 0.95, 0.99]))
@settings(max_examples=40)
def test_a_steady_load_gets_the_cores_of_equations_4_and_8(rate: float, qos: float) -> None:
    """By brute force: the first count whose normal distribution exceeds the load often enough."""
    curve = choose(SAMPLES, max_machines=BOUNDS.most).model
    counts = range(1, BOUNDS.most + 1)
    deviation = math.sqrt(curve.residual_variance)

    def first(enough: list[bool]) -> int:
        return next((m for m, yes in zip(counts, enough, strict=True) if yes), BOUNDS.most)

    chances = [1.0 - NormalDist(float(curve.mean(m)), deviation).cdf(rate) for m in counts]
    sure = [abs(chance - qos) > 1e-9 for chance in chances]
    if all(sure):
        known = first([chance >= qos for chance in chances])
        assert run(f"mst-1(cycle=2s, qos={qos})", [rate] * 6) == known
        # A load that never changes has no variance, so eq. 21 is eq. 8.
        assert run(f"mst-5(cycle=2s, qos={qos})", [rate] * 6) == known
    plain = first([float(curve.mean(m)) > rate for m in counts])
    assert run("mst-0(cycle=2s)", [rate] * 6) == plain
    assert run("mst-4(cycle=2s)", [rate] * 6) == plain


@given(rates=st.lists(st.floats(0.0, 5000.0), min_size=20, max_size=40))
@settings(max_examples=10)
def test_cores_change_only_where_a_cycle_begins_or_is_planned(rates: list[float]) -> None:
    """S = 10 s with U = 2 s: more cores at second 8, fewer at second 0 of a cycle."""
    brain, cores, began = controller("mst-4(cycle=10s)", MEASURED), 1, 1_700_000_000
    for number, rate in enumerate(rates):
        found = brain.tick(tick(number, rate, cores)).decision
        if found.cores is not None:
            assert (began + number) % 10 == (8 if found.cores > cores else 0)
            cores = found.cores


def batch(number: int, cores: int, rate: float, seconds: float) -> Measurement:
    """A tick with a batch of 0.2 s and 1 ms a row: 800 rows per second and core within 1.5 s."""
    rows = round(1000.0 * cores * (seconds - 0.2 + 0.1 * (number % 3)))
    return measured(number, rate=rate, cores=cores, duration_s=0.2 + 1e-3 * rows / cores, rows=rows)


def test_it_learns_from_saturated_batches_and_finds_the_cores() -> None:
    brain, cores = controller("mst-3(cycle=2s)"), 1
    for number in range(20):
        found = brain.tick(batch(number, cores, 8000.0, 2.0)).decision
        cores = cores if found.cores is None else found.cores
    assert 10 <= cores <= 16


def test_a_decision_says_what_its_cores_can_do() -> None:
    brain = controller("mst-1(cycle=2s)", MEASURED)
    said = [brain.tick(tick(number, 1000.0, 1)).decision for number in range(4)]
    change = next(one for one in said if one.cores is not None)
    assert "the load is 1000: " in change.reason
    assert f"{change.cores} cores process 1," in change.reason
    assert "rows/s within the target, give or take" in change.reason


def test_without_a_batch_it_holds() -> None:
    brain = controller("mst-7(cycle=2s)")
    records = [brain.tick(tick(number, 500.0, 2)) for number in range(6)]
    assert all(record.decision.holds for record in records)
    assert "no batch has shown yet" in records[-1].decision.reason


def learning(policy: str) -> tuple[Controller, Record]:
    brain = controller(policy)
    records = [brain.tick(batch(number, 1 + number % 6, 4000.0, 2.0)) for number in range(30)]
    return brain, records[-1]


@pytest.mark.parametrize("policy", ["mst-2(cycle=2s)", "mst-7(cycle=2s)"])
def test_a_restart_begins_with_the_samples(policy: str) -> None:
    before, last = learning(policy)
    document = json.loads(json.dumps(before.learned()))
    after = controller(policy)
    assert after.recall(document, last.measurement.at_s + 5.0) is None
    first = after.tick(tick(40, 1000.0, 1))
    assert first.beliefs["capacity"] == pytest.approx(800.0, rel=0.1)
    other = new_controller(Assembly(target=Target(9.0), bounds=BOUNDS, policy=policy))
    other.recall(document, last.measurement.at_s + 5.0)
    assert "capacity" not in other.tick(tick(40, 1000.0, 1)).beliefs


def file_of(rows_per_s: float) -> MeasuredCapacity:
    """A capacity file: so many rows a second for each core."""
    samples = [CapacitySample(cores=m, rows_per_s=m * rows_per_s) for m in (1, 2, 4, 8, 16)]
    return MeasuredCapacity(pipeline="held", samples=tuple(samples))


def after_a_restart(file: MeasuredCapacity | None, *, batches: int, then: float) -> float:
    """What one core is believed to do after a run with a file, and a restart with another one."""
    policy = "mst-7(cycle=2s)"
    before = controller(policy, file)
    for number in range(batches):
        before.tick(batch(number, 1 + number % 6, 4000.0, 2.0))
    document = json.loads(json.dumps(before.learned()))
    after = controller(policy, file_of(then))
    assert after.recall(document, 1_700_000_000.0 + batches) is None
    return after.tick(tick(batches + 1, 1000.0, 1)).beliefs["capacity"]


@pytest.mark.parametrize("file", [None, file_of(800.0)])
def test_a_new_capacity_file_counts_and_not_what_was_learned_before_it(
    file: MeasuredCapacity | None,
) -> None:
    """The pipeline was changed and measured again: one core now does 3000 rows/s, not 800."""
    assert after_a_restart(file, batches=250, then=3000.0) == pytest.approx(3000.0, rel=0.01)


def test_the_same_capacity_file_is_not_counted_twice() -> None:
    """Twelve saturated batches at 800 beside a file of five samples at 1600 per core."""
    policy = "mst-7(cycle=2s)"
    running = controller(policy, file_of(1600.0))
    for number in range(12):
        last = running.tick(batch(number, 1, 4000.0, 2.0))
    after = controller(policy, file_of(1600.0))
    after.recall(json.loads(json.dumps(running.learned())), 1_700_000_013.0)
    again = after.tick(tick(13, 1000.0, 1))
    assert again.beliefs["capacity"] == pytest.approx(last.beliefs["capacity"], rel=1e-6)


def test_beliefs_tell_the_capacity_of_the_present_cores() -> None:
    _, last = learning("mst-7(cycle=2s)")
    cores = last.measurement.cores_granted
    assert last.beliefs["capacity"] == pytest.approx(800.0 * cores, rel=0.1)
    assert last.beliefs["capacity_sd"] >= 0.0


@pytest.mark.parametrize("policy", ["priced-capacity(cycle=10s)", "priced-capacity-cycle"])
def test_the_priced_policy_learns_from_any_batch(policy: str) -> None:
    brain, cores = controller(policy), 1
    for number in range(80):
        found = brain.tick(batch(number, cores, 7600.0, 0.7)).decision
        cores = cores if found.cores is None else found.cores
    assert 9 <= cores <= 20


def test_the_priced_policy_learns_a_saturated_batch_once() -> None:
    """A stall of the sink, and then no batch for minutes: it is one sample among others."""
    brain = controller("priced-capacity(cycle=10s)")
    for number in range(60):
        brain.tick(batch(number, 4, 3000.0, 1.5))
    before = brain.tick(tick(60, 3000.0, 4)).beliefs["capacity"]
    brain.tick(measured(61, rate=3000.0, cores=4, duration_s=30.0, rows=3000))
    for number in range(62, 300):
        last = brain.tick(tick(number, 3000.0, 4))
    assert last.beliefs["capacity"] == pytest.approx(before, rel=0.25)
