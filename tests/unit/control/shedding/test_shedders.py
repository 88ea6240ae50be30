"""The shedders: the gain, the clamp, the start, the switch, and what they hold in simulation."""

import dataclasses

import numpy as np
import pytest

from tidegate.control.assemble import new_shedder
from tidegate.control.names import SHEDDERS
from tidegate.control.shedding.feedback_shedder import (
    PAPER_GAIN,
    PAPER_INTERVAL_S,
    FeedbackShedder,
    PaperShedder,
    corrected,
    gain,
    stable_below,
)
from tidegate.control.shedding.model_shedder import MOST_CORRECTION, ModelShedder
from tidegate.control.shedding.shedder import LEAST_KEEP, Look, most_keep
from tidegate.errors import AskedWrongly
from tidegate.models.microbatch.batch_cost import BatchCost
from tidegate.models.shedding.outlook import BatchOutlook
from tidegate.sim.shedding.engine import EngineWorld, simulate_engine
from tidegate.sim.shedding.experiment import BODIES, judge, overload, paper_load
from tidegate.workload.profile import constant, steps


def outlook(load: float, *, rate: float = 10_000.0, round_s: float = 1.0) -> BatchOutlook:
    """A round that finds the rows of `round_s`, at so many times the capacity."""
    return BatchOutlook(
        offered_rows=rate * round_s, arrival_rate=rate, row_s=load / rate, fixed_s=0.1
    )


def look(at_s: float, load: float, latency_s: float | None = None, delay_s: float = 1.0) -> Look:
    return Look(at_s=at_s, outlook=outlook(load), latency_s=latency_s, delay_s=delay_s)


@pytest.mark.parametrize("delay", range(40))
def test_the_gain_is_within_proposition_1_and_its_loop_does_not_swing(delay: int) -> None:
    q = gain(delay)
    assert 0.0 < q < stable_below(delay)
    roots = np.roots([1.0, -1.0, *[0.0] * (delay - 1), q] if delay else [1.0, q - 1.0])
    assert np.abs(roots).max() < 1.0
    largest = roots[np.argmax(np.abs(roots))]
    assert abs(largest.imag) < 1e-3
    assert largest.real == pytest.approx(delay / (delay + 1), abs=1e-3)


def test_the_papers_gain_breaks_its_proposition_at_three_seconds() -> None:
    delays = {target_s: round(target_s / PAPER_INTERVAL_S) for target_s in (0.5, 1.0, 2.0, 3.0)}
    broken = [target_s for target_s, d in delays.items() if stable_below(d) < PAPER_GAIN]
    assert broken == [3.0]
    assert all(gain(d) < stable_below(d) for d in delays.values())


def test_eq_7_moves_towards_the_target_and_never_below_zero() -> None:
    assert corrected(100.0, 2.0, 1.0, 0.1) == pytest.approx(105.0)
    assert corrected(100.0, 2.0, 3.0, 0.1) == pytest.approx(95.0)
    assert corrected(100.0, 2.0, 1e6, 1.0) == 0.0


def test_the_outlook_settles_where_the_micro_batch_station_does() -> None:
    cost = BatchCost(fixed_s=0.1, work_s=1e-3)
    ahead = BatchOutlook(offered_rows=0.0, arrival_rate=9000.0, row_s=cost.row_s(4), fixed_s=0.1)
    tau = ahead.steady_throughput(2.0)
    assert tau == pytest.approx(cost.throughput(4, 2.0))
    steady = dataclasses.replace(ahead, offered_rows=9000.0 * 2.0 / 1.5, horizon_s=50.0)
    assert steady.latency_s(tau / 9000.0) == pytest.approx(2.0, rel=1e-6)
    assert most_keep(steady.latency_s, 2.0) == pytest.approx(tau / 9000.0, rel=1e-3)


def test_gathering_is_paid_before_anything_is_kept() -> None:
    free = BatchOutlook(offered_rows=0.0, arrival_rate=5000.0, row_s=1e-3)
    paid = dataclasses.replace(free, gather_s=1e-4)
    assert paid.steady_throughput(1.0) == pytest.approx(0.5 * free.steady_throughput(1.0))


@pytest.mark.parametrize("make", [FeedbackShedder, ModelShedder])
def test_nothing_is_shed_without_an_overload(make: type) -> None:
    one = make(2.0)
    assert all(one.keep(look(t, 0.7, 0.9)) == 1.0 for t in range(50))


@pytest.mark.parametrize("make", [FeedbackShedder, ModelShedder])
def test_it_starts_from_the_models_estimate(make: type) -> None:
    one = make(2.0)
    first = one.keep(look(0.0, 4.0))
    assert first == pytest.approx((2.0 / 1.5 - 0.1) / 4.0, rel=1e-3)


@pytest.mark.parametrize("make", [FeedbackShedder, ModelShedder])
def test_it_goes_off_only_after_a_calm_time(make: type) -> None:
    one = make(2.0)
    one.keep(look(0.0, 4.0))
    states = [one._switch.update(look(t, 0.5, 1.0)) for t in (1.0, 2.0, 2.9, 3.1)]
    assert states == [True, True, True, False]
    assert one.keep(look(3.5, 0.5, 1.0)) == 1.0


def test_feedback_stays_within_what_is_offered_and_the_papers_winds_up() -> None:
    ours, paper = FeedbackShedder(2.0), PaperShedder(2.0)
    for t in range(100):
        quiet = look(float(t), 1.35, 0.5)
        ours.keep(quiet)
        paper.keep(quiet)
    assert ours._rows == quiet.outlook.offered_rows, "at its clamp, and no further"
    assert paper._rows is not None and paper._rows > 100.0 * quiet.outlook.offered_rows
    kept = [
        (ours.keep(look(100.0 + t, 5.0, 2.5)), paper.keep(look(100.0 + t, 5.0, 2.5)))
        for t in range(20)
    ]
    assert kept[0][0] < 1.0 and kept[-1][0] < 0.5
    assert all(printed == 1.0 for _, printed in kept)


def test_the_correction_of_the_model_is_bounded_and_needs_rows_that_were_shed() -> None:
    one = ModelShedder(2.0)
    for t in range(300):
        one.keep(look(float(t), 4.0, 50.0))
    assert one.aim_s == pytest.approx(2.0 / MOST_CORRECTION)
    calm = ModelShedder(2.0)
    for t in range(300):
        calm.keep(look(float(t), 0.5, 0.1))
    assert calm.aim_s == 2.0


def test_a_share_is_never_zero() -> None:
    hopeless = BatchOutlook(offered_rows=1e6, arrival_rate=1e6, row_s=1.0, fixed_s=9.0)
    assert most_keep(hopeless.latency_s, 1.0) == LEAST_KEEP


@pytest.mark.parametrize("target_s", [0.0, -1.0, float("inf"), float("nan")])
def test_a_target_that_is_none_is_refused(target_s: float) -> None:
    for name in SHEDDERS:
        with pytest.raises(AskedWrongly, match="positive duration"):
            new_shedder(name, target_s)


def test_a_shedder_that_does_not_exist_is_refused() -> None:
    with pytest.raises(AskedWrongly, match="did you mean 'feedback'"):
        new_shedder("feedbak", 1.0)


# ---------------------------------------------------------------------- in simulation


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(("target_s", "lowest"), [(0.5, 1.1), (3.0, 2.0)])
def test_the_default_holds_the_target_and_uses_the_capacity(
    body: str, target_s: float, lowest: float
) -> None:
    series = overload(body, "model", target_s=target_s, lowest=lowest, seconds=100.0)
    found = judge(series, target_s, 100.0)
    assert found.latency_over_target == pytest.approx(1.0, abs=0.03)
    assert found.kept_over_capacity > 0.96
    assert found.settled >= 0.85
    assert abs(series.balance) < 0.5


def test_without_shedding_latency_grows_and_grows() -> None:
    series = overload("engine", None, target_s=1.0, lowest=1.1, seconds=60.0)
    assert series.latency_s[-1] > 5.0
    assert series.latency_s[-1] > 2.0 * series.latency_s[len(series.latency_s) // 2]


def test_the_papers_fixed_gain_is_worse_at_three_seconds() -> None:
    paper = overload("engine", "paper", target_s=3.0, lowest=1.1, seconds=100.0)
    model = overload("engine", "model", target_s=3.0, lowest=1.1, seconds=100.0)
    assert judge(paper, 3.0, 100.0).worst_over_target > 1.3
    assert judge(model, 3.0, 100.0).worst_over_target < 1.3


def test_an_engine_with_room_sheds_nothing() -> None:
    world = EngineWorld(profile=constant(1000.0), queries=80, seconds=20.0)
    outcome = simulate_engine(world, new_shedder("model", 0.5))
    assert (outcome.keep == 1.0).all()
    assert outcome.kept.sum() == outcome.offered.sum()
    assert outcome.mean_latency_s(5.0) < 0.2


def test_a_target_below_the_floor_is_refused_before_the_run() -> None:
    with pytest.raises(AskedWrongly, match="below the floor of 120 ms"):
        overload("micro-batch", "model", target_s=0.1, lowest=1.1, seconds=60.0)


def test_an_overload_that_ends_is_forgotten() -> None:
    world = EngineWorld(
        profile=steps([(0.0, 500.0), (10.0, 3000.0), (20.0, 500.0)]), queries=100, seconds=40.0
    )
    outcome = simulate_engine(world, new_shedder("model", 1.0))
    shed = outcome.decided_s[outcome.keep < 1.0]
    assert shed.min() > 10.0 and shed.max() < 25.0


def test_the_papers_load() -> None:
    load = paper_load(500.0, 50.0)
    assert [load.rate(t) for t in (5, 15, 25, 35, 45)] == [500, 1000, 1500, 1000, 500]
