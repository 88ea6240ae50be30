"""A load with a daily shape on a cluster that grants cores in 90 s, with a restart in between."""

from benchmarks import days

from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.target import Target
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.view.summary import summarise
from tidegate.workload.profile import steps
from tidegate.workload.weeks import office_like


def test_the_target_is_held_across_a_restart_at_little_more_than_the_oracle() -> None:
    """From four to noon, with the opening at nine."""
    begin, hours = 4, 8
    load = days.by_ten_seconds(office_like()[60 * begin : 60 * (begin + hours)])
    found = days.run_days(load, 3600.0 * hours, restart_s=2 * 3600.0)
    (day,) = found.days
    assert day.within >= 0.985, "the first day of a controller that knows nothing"
    assert day.core_seconds <= 1.3 * days.least(load, 0.0, 3600.0 * hours)
    assert 10_000 < found.learned_bytes < 600_000
    assert any("a run learned that ended" in note for note in found.notes)


def test_time_in_which_no_batch_ends_is_judged_as_well() -> None:
    """Ten minutes of forty are overloaded: batches get longer and longer, and few of them end."""
    segment = SimulatedSegment(
        fixed_s=days.FIXED_S, stages=(Stage(name="work", work_s=days.WORK_S),)
    )
    world = World(
        segments=(segment,),
        profile=steps([(0, 300.0), (600, 1600.0), (1200, 300.0)]),
        seconds=2400.0,
        cores=8,
        tick_s=days.TICK_S,
        bucket_s=0.1,
        starts_s=days._MONDAY_S,
    )
    static = Assembly(
        target=Target(days.TARGET_S), bounds=Bounds(8, 8), policy="static", tick_s=days.TICK_S
    )
    records = simulate(world, new_controller(static)).records
    (day,) = days.by_day(records)
    ended = [one.measurement.latency for one in records if one.measurement.latency is not None]
    kindly = sum(one.mean_s <= days.TARGET_S for one in ended) / len(ended)
    assert day.within == summarise(records).within_target
    assert day.within < 0.75 < 0.85 < kindly
    assert day.core_seconds == 8 * 2400.0


def test_a_restart_is_judged_and_paid_for() -> None:
    hours = 1
    load = days.by_ten_seconds(office_like()[: 60 * hours])
    (day,) = days.run_days(load, 3600.0 * hours, restart_s=1800.0).days
    (whole,) = days.run_days(load, 3600.0 * hours, restart_s=1e9).days
    assert abs(day.core_seconds / whole.core_seconds - 1.0) < 0.1
