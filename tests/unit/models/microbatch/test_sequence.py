"""The sojourn through segments in sequence and in loops, against the simulator and by draws."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidegate.control.measurement import Latency
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.microbatch.sequence import (
    _extra_passes,
    total_latency,
    total_percentile,
    total_sojourn,
)
from tidegate.models.microbatch.station import MicroBatchStation
from tidegate.sim.microbatch.measure import latency_of
from tidegate.sim.microbatch.pipeline import PipelineSimulation
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.workload.profile import steps

RATE, CORES = 400.0, 8


def simulated(costs: list[tuple[float, float]], noise: float, interval_s: float) -> Latency:
    """The sojourn of a chain of segments, each with (a, rho) on cores of its own."""
    segments = tuple(
        SimulatedSegment(
            name=f"s{number}",
            fixed_s=fixed_s,
            stages=(Stage(name=f"o{number}", work_s=rho * CORES / RATE),),
            after=None if number == 0 else f"s{number - 1}",
            trigger_s=interval_s,
        )
        for number, (fixed_s, rho) in enumerate(costs)
    )
    world = World(
        segments=segments,
        profile=steps([(0.0, RATE)]),
        seconds=1200.0,
        cores=CORES * len(costs),
        noise=noise,
        tick_s=1200.0,
    )
    simulation = PipelineSimulation(world)
    for one in simulation._running:
        one.tasks = dict.fromkeys(one.tasks, CORES)
    last = simulation._running[-1]
    for one in simulation._running:
        simulation._advance(one, world.seconds)
    found = latency_of([batch for _, batch in last.ended if batch.started_s > 60.0])
    assert found is not None
    return found


def stations(
    costs: list[tuple[float, float]], noise: float = 0.0, interval_s: float = 0.0
) -> list[MicroBatchStation]:
    longer = math.exp(noise**2 / 2.0)  # the mean of the simulator's noise
    return [
        MicroBatchStation(
            cost=BatchCost(fixed_s=fixed_s * longer, work_s=rho * CORES / RATE * longer),
            arrival_rate=RATE,
            interval_s=interval_s,
            noise=noise,
        )
        for fixed_s, rho in costs
    ]


COST = st.tuples(st.floats(0.1, 0.5), st.floats(0.1, 0.75))


@settings(max_examples=20, deadline=None)
@given(cost=COST, noise=st.floats(0.0, 0.1), interval_s=st.sampled_from([0.0, 1.0, 4.0]))
@example(cost=(0.5, 0.75), noise=0.1, interval_s=1.0)
def test_one_segment_has_the_simulated_mean_and_percentiles(
    cost: tuple[float, float], noise: float, interval_s: float
) -> None:
    measured = simulated([cost], noise, interval_s)
    (station,) = stations([cost], noise, interval_s)
    assert station.latency(CORES) == pytest.approx(measured.mean_s, rel=0.04)
    assert total_latency([station], [CORES]) == pytest.approx(measured.mean_s, rel=0.04)
    assert station.percentile(CORES, 0.95) == pytest.approx(measured.p95_s, rel=0.06)
    assert station.percentile(CORES, 0.5) == pytest.approx(measured.p50_s, rel=0.06)


@settings(max_examples=5, deadline=None, derandomize=True)
@given(costs=st.lists(COST, min_size=2, max_size=2), noise=st.floats(0.04, 0.1))
@example(costs=[(0.4, 0.6), (0.1, 0.2)], noise=0.0)
@example(costs=[(0.1, 0.2), (0.4, 0.6)], noise=0.05)
def test_two_segments_in_sequence_have_the_simulated_mean_and_p95(
    costs: list[tuple[float, float]], noise: float
) -> None:
    measured = simulated(costs, noise, 0.0)
    chain, cores = stations(costs, noise), [CORES, CORES]
    # Where both batches take about as long, the phase between them decides. Without noise it locks
    # at every ratio of small numbers.
    first, second = (fixed_s / (1.0 - rho) for fixed_s, rho in costs)
    near = 0.75 < second / first < 1.35
    assert total_latency(chain, cores) == pytest.approx(measured.mean_s, rel=0.3 if near else 0.12)
    p95_s = total_percentile(chain, cores, 0.95)
    assert p95_s == pytest.approx(measured.p95_s, rel=0.35 if near else 0.15)


def test_rows_that_a_slower_segment_hands_over_do_not_wait() -> None:
    costs = [(0.4, 0.5), (0.1, 0.25)]  # batches of 0.8 s, then of 0.1 + 0.25 * 0.8 s
    chain = stations(costs)
    assert total_latency(chain, [CORES, CORES]) == pytest.approx(1.5, rel=2e-3)
    p95_s = total_percentile(chain, [CORES, CORES], 0.95)
    assert p95_s == pytest.approx(1.95 * 0.8 + 0.3, rel=0.01)
    assert simulated(costs, 0.0, 0.0).mean_s == pytest.approx(1.5, rel=0.02)


def test_segments_on_the_same_trigger_wait_for_its_next_tick() -> None:
    costs = [(0.2, 0.25), (0.2, 0.25)]  # every 1 s, batches of 0.45 s
    chain = stations(costs, interval_s=1.0)
    assert total_latency(chain, [CORES, CORES]) == pytest.approx(0.5 + 1.0 + 0.45, rel=2e-3)
    assert simulated(costs, 0.0, 1.0).mean_s == pytest.approx(1.95, rel=0.02)


@settings(max_examples=20, deadline=None)
@given(back=st.floats(0.05, 0.85), share=st.sampled_from([0.5, 0.95, 0.99]))
def test_a_loop_is_passed_a_geometric_number_of_times(back: float, share: float) -> None:
    """Rows that a segment sends back to itself take one more batch each time."""
    passes = 1.0 / (1.0 - back)
    station = MicroBatchStation(
        cost=BatchCost(fixed_s=0.5, work_s=0.5 * CORES / (passes * RATE)),
        arrival_rate=passes * RATE,
        visit_ratio=passes,
        loops=True,
    )
    batch_s = station.duration_s(CORES)
    random = np.random.default_rng(7)
    turns = random.geometric(1.0 - back, 200_000)
    drawn = batch_s * (random.random(len(turns)) + turns)
    assert total_latency([station], [CORES]) == pytest.approx(drawn.mean(), rel=0.02)
    found = total_percentile([station], [CORES], share)
    assert found == pytest.approx(float(np.quantile(drawn, share)), rel=0.06, abs=0.05 * batch_s)


def test_rows_that_are_multiplied_pass_the_next_segment_once() -> None:
    chain = stations([(0.4, 0.5), (0.1, 0.25)])
    first, second = chain
    many = MicroBatchStation(
        cost=BatchCost(fixed_s=0.1, work_s=second.cost.work_s / 10.0),
        arrival_rate=10.0 * RATE,
        visit_ratio=10.0,
    )
    assert total_latency([first, many], [CORES, CORES]) == pytest.approx(
        total_latency(chain, [CORES, CORES]), rel=2e-3
    )


def test_rows_that_are_filtered_out_end_before_the_next_segment() -> None:
    first, second = stations([(0.4, 0.5), (0.1, 0.25)])
    half = MicroBatchStation(
        cost=BatchCost(fixed_s=0.1, work_s=2.0 * second.cost.work_s),
        arrival_rate=0.5 * RATE,
        visit_ratio=0.5,
    )
    sojourn = total_sojourn([first, half], [CORES, CORES])
    assert sojourn is not None
    assert sojourn.mean_s == pytest.approx(1.2 + 0.5 * 0.3, rel=2e-3)
    assert sojourn.percentile(0.99) > 1.99 * 0.8  # the slowest rows are those that go on
    assert sum(way.share for way in sojourn.ways) == pytest.approx(1.0)


def test_a_chain_with_a_station_that_cannot_keep_up_has_no_finite_sojourn() -> None:
    chain = stations([(0.4, 0.5), (0.1, 1.2)])
    assert total_latency(chain, [CORES, CORES]) == math.inf
    assert total_percentile(chain, [CORES, CORES], 0.95) == math.inf


def test_queries_beside_each_other_share_the_rows_and_add_no_latency() -> None:
    """Attached queries each read a source of their own: a row passes one of them."""
    first, second = (
        dataclasses.replace(one, visit_ratio=share, apart=True)
        for one, share in zip(stations([(0.4, 0.5), (1.0, 0.5)]), (0.25, 0.75), strict=True)
    )
    both = total_sojourn([first, second], [CORES, CORES])
    assert both is not None
    assert both.mean_s == pytest.approx(0.25 * 1.2 + 0.75 * 3.0, rel=2e-3)
    assert both.percentile(0.1) == pytest.approx(0.8 + 0.4 * 0.8, rel=0.02)
    assert both.percentile(0.99) == pytest.approx(2.0 + (0.74 / 0.75) * 2.0, rel=0.02)


def test_a_sequence_behind_the_second_of_two_sources_counts_for_its_rows_alone() -> None:
    one, two, after = stations([(0.4, 0.5), (0.4, 0.5), (0.1, 0.25)])
    one = dataclasses.replace(one, visit_ratio=0.5)
    two = dataclasses.replace(two, visit_ratio=0.5, apart=True)
    after = dataclasses.replace(after, visit_ratio=0.5)
    assert total_latency([one, two, after], [CORES] * 3) == pytest.approx(1.2 + 0.5 * 0.3, rel=2e-3)


@pytest.mark.parametrize("mean", [1.5, 2.0, 9.0, 60.0, 1000.0])
def test_the_numbers_of_passes_are_those_of_a_geometric_distribution(mean: float) -> None:
    """Against the sums over all numbers, one by one."""
    found = _extra_passes(mean)
    assert len(found) <= 50
    assert sum(share for share, _, _ in found) == pytest.approx(1.0)
    assert sum(share * extra for share, extra, _ in found) == pytest.approx(mean - 1.0)
    square = sum(share * (vary + extra**2) for share, extra, vary in found)
    assert square == pytest.approx(mean * (mean - 1.0) + (mean - 1.0) ** 2)
    stay = 1.0 - 1.0 / mean
    begin, share, extra, vary = 0, *found[0]
    step = round(math.log1p(-share) / math.log(stay))
    chances = stay ** np.arange(step) * (1.0 - stay)
    numbers = begin + np.arange(step)
    assert share == pytest.approx(float(chances.sum()))
    assert extra == pytest.approx(float(np.average(numbers, weights=chances)), abs=1e-9)
    spread = float(np.average((numbers - extra) ** 2, weights=chances))
    assert vary == pytest.approx(spread, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("passes", [1e3, 1e5, 1e9, 1e15])
def test_any_number_of_passes_is_a_few_ways(passes: float) -> None:
    """A source that falls silent makes the ratio as large as it likes."""
    station = MicroBatchStation(
        cost=BatchCost(fixed_s=0.5, work_s=0.1 / RATE),
        arrival_rate=RATE,
        visit_ratio=passes,
        loops=True,
    )
    sojourn = total_sojourn([station], [CORES])
    assert sojourn is not None and len(sojourn.ways) <= 50
    batch_s = station.duration_s(CORES)
    assert sojourn.mean_s == pytest.approx(passes * batch_s, rel=0.01)
    assert 0.0 < sojourn.percentile(0.95) < math.inf


@settings(max_examples=30, deadline=None)
@given(
    passes=st.floats(1.0, 40.0),
    through=st.sampled_from([0.3, 1.0]),
    noise=st.floats(0.0, 0.2),
    alone=st.booleans(),
)
def test_the_mean_alone_is_the_mean_of_the_distribution(
    passes: float, through: float, noise: float, alone: bool
) -> None:
    first = MicroBatchStation(
        cost=BatchCost(fixed_s=0.5, work_s=0.4 * CORES / (passes * RATE)),
        arrival_rate=passes * RATE,
        visit_ratio=passes,
        loops=True,
        noise=noise,
    )
    later = MicroBatchStation(
        cost=BatchCost(fixed_s=0.1, work_s=1e-6), arrival_rate=RATE, visit_ratio=through
    )
    chain = [first] if alone else [first, later]
    whole = total_sojourn(chain, [CORES] * len(chain))
    assert whole is not None
    assert total_latency(chain, [CORES] * len(chain)) == pytest.approx(whole.mean_s, rel=2e-3)
