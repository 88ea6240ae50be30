"""A whole recording in hindsight: sums that add up, and what is said where nothing is known."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.known_cost import WORK_S, enough_for, known_run, later
from tests.helpers.pipeline_worlds import controller, measured, world
from tests.helpers.synthetic_surge import surge
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.limits import Limits, excluded_periods
from tidegate.control.record import Record
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.view.hindsight import words
from tidegate.view.hindsight.causes import ABOVE, MISSED, held_back_cause
from tidegate.view.hindsight.hindsight import Best, Hindsight
from tidegate.view.hindsight.look_back import hindsight_of
from tidegate.workload.profile import steps


def sure(found: Hindsight) -> None:
    """What must hold of every recording."""
    used, enough = found.known_core_seconds, found.enough_core_seconds
    assert used == pytest.approx(enough + found.above_core_seconds - found.below_core_seconds)
    assert found.core_seconds >= used - 1e-6 and found.known_seconds <= found.seconds + 1e-6
    assert set(found.above) <= set(ABOVE) and set(found.missed) <= set(MISSED)
    assert found.missed_s <= found.judged_seconds + 1e-6
    assert sum(found.by_kind().values()) == len(found.wrong) <= found.judged
    document = found.document()
    assert document["decisions"] == len(document["verdicts"]) == len(found.verdicts)
    assert all(len(one) > 10 for one in words.sentences(found))


@settings(max_examples=25, deadline=None)
@given(
    loads=st.lists(
        st.tuples(st.integers(3, 12), st.floats(50.0, 6000.0), st.integers(0, 6)),
        min_size=1,
        max_size=6,
    ),
    least=st.integers(1, 4),
)
def test_core_seconds_add_up(loads: list[tuple[int, float, int]], least: int) -> None:
    """Any loads on any cores that keep up with them."""
    rates, cores, decided = [], [], {}
    for ticks, rate, more in loads:
        there = int(rate * WORK_S * 1.3) + 1 + more
        if cores and cores[-1] != there:
            decided[len(cores) - 1] = there
        rates += [rate] * ticks
        cores += [there] * ticks
    found = hindsight_of(known_run(rates, cores, decided=decided, bounds=Bounds(least, 64)))
    sure(found)
    assert found.known_seconds == pytest.approx(float(len(rates)))
    assert len(found.verdicts) == len(decided)


def test_a_run_with_twice_the_cores_used_twice_what_was_enough() -> None:
    rates = [1500.0] * 30 + [3000.0] * 30 + [1500.0] * 30
    cores = [2 * enough_for(rate) for rate in rates]
    found = hindsight_of(known_run(rates, cores))
    sure(found)
    assert found.core_seconds == 90 * 4 + 30 * 4
    assert found.enough_core_seconds == pytest.approx(found.core_seconds / 2, abs=4.0)
    assert found.most_enough == enough_for(3000.0)
    said = words.sentences(found)
    assert said[0].endswith(
        f"were used, {found.core_seconds / found.enough_core_seconds:.2f} times as many."
    )
    assert "was held in all 90 s" in said[1]


def test_several_runs_of_a_checkpoint_are_judged_one_by_one() -> None:
    run = known_run([1000.0] * 30, [4] * 30)
    both = hindsight_of([*run, *later(run, 600.0)])
    one = hindsight_of(run)
    sure(both)
    assert both.seconds == 60.0 and both.enough_core_seconds == 2 * one.enough_core_seconds


def test_what_cannot_be_known_is_said() -> None:
    without = hindsight_of(known_run([1000.0] * 10, [4] * 10, target_s=None))
    assert without.document()["known"] is False
    assert "have no target" in words.sentences(without)[0]
    unlearned = hindsight_of(surge(10))
    sure(unlearned)
    assert "could not be learned" in words.sentences(unlearned)[0]
    assert unlearned.document()["why_unknown"].startswith("no batch with rows has ended")


def test_a_part_that_is_not_known_is_told_apart() -> None:
    run = known_run([1000.0] * 40, [4] * 40)
    nothing = dataclasses.replace(run[0].measurement, segments=(), operators=())
    run[:10] = [
        dataclasses.replace(
            one, measurement=dataclasses.replace(nothing, at_s=one.measurement.at_s)
        )
        for one in run[:10]
    ]
    found = hindsight_of(run)
    sure(found)
    assert (found.seconds, found.known_seconds) == (40.0, 30.0)
    assert "covers 30 s of 40 s" in words.sentences(found)[0]


def test_a_dry_run_is_said_to_be_one() -> None:
    run = known_run([1000.0] * 20, [4] * 20)
    made = Assembly.of(run[0].assembly or {})
    dry = dataclasses.replace(made, limits=Limits(dry_run=True))
    run[0] = dataclasses.replace(run[0], assembly=dry.document())
    found = hindsight_of(run)
    sure(found)
    assert found.dry_run and set(found.above) == {"dry_run"}
    assert any("dry run" in one and "tidegate whatif" in one for one in words.sentences(found))


def test_decisions_that_were_right_wrong_and_unknown_are_counted() -> None:
    """Cores 8 to 2 after 60 s in which 2 were enough, then 2 to 8 without need, then the end."""
    cores = [8] * 61 + [2] * 50 + [8] * 50 + [2] * 2
    run = known_run([1000.0] * 163, cores, decided={60: 2, 110: 8, 160: 2})
    found = hindsight_of(run)
    sure(found)
    kinds = [one.fault.kind if one.fault else None for one in found.verdicts]
    assert kinds == ["late_in", "needless_out", "late_in"]
    assert found.judged == 3
    (late, needless, again) = found.verdicts
    assert late.fault is not None and late.fault.core_seconds == pytest.approx(61 * 6, abs=12)
    assert needless.fault is not None and needless.fault.core_seconds == 30 * 6
    assert again.fault is not None and "2 cores had been enough for 50 s" in again.fault.why
    assert words.sentences(found)[-1] == (
        "3 of 3 decisions were wrong in hindsight: 1 scaled out without need, 2 scaled in too late."
    )
    short = hindsight_of(run[:113])
    assert short.verdicts[-1].unknown == "too little of what followed is on record"
    assert words.sentences(short)[-1].startswith("1 decision cannot be judged: too little")


def test_cores_that_had_to_go_are_not_judged() -> None:
    """Bounds that were lowered while it ran, as `update` does it."""
    run = known_run([1000.0] * 80, [8] * 41 + [3] * 39, decided={40: 3})
    made = dataclasses.replace(Assembly.of(run[0].assembly or {}), bounds=Bounds(1, 3))
    run[40] = dataclasses.replace(run[40], assembly=made.document())
    (one,) = hindsight_of(run).verdicts
    assert one.fault is None and one.unknown is not None and "fewer were allowed" in one.unknown


def test_the_oracle_is_said_with_what_it_holds() -> None:
    found = hindsight_of(known_run([1000.0] * 20, [4] * 20))
    assert found.document()["oracle_core_seconds"] is None
    whole = dataclasses.replace(found, best=Best(30.0, 1.0))
    assert words.sentences(whole)[1] == (
        "With the future known, 30 would have held the target (the oracle)."
    )
    part = dataclasses.replace(found, best=Best(30.0, 0.9, estimated=True))
    assert "about 30 would have held the target for 90.0% of the time" in words.sentences(part)[1]


def held_back(limits: Limits) -> tuple[Record, ...]:
    """What a real controller decides on two surges, within its limits."""
    load = steps([(0, 1000.0), (8, 3000.0), (14, 6000.0)])
    return simulate(world(load, seconds=24.0), controller(limits=limits)).records


@pytest.mark.parametrize(
    ("limits", "cause"),
    [
        (Limits(excluded=excluded_periods(["00:00-24:00"])), "excluded"),
        (Limits(first_after_s=3600.0), "first_change"),
        (Limits(dry_run=True), "dry_run"),
        (Limits(scale_out_cooldown_s=3600.0, scale_in_cooldown_s=3600.0), "cooldown"),
        (Limits(t_ra_s=3600.0), "between_changes"),
    ],
)
def test_what_the_controller_says_is_understood(limits: Limits, cause: str) -> None:
    records = held_back(limits)
    causes = {held_back_cause(one) for one in records if one.held_back is not None}
    assert causes == {cause}


def test_a_refusal_is_understood() -> None:
    loop = controller()
    found = [
        loop.tick(
            measured(tick, rate=4000.0, backlog=4000.0, duration_s=0.9), approve=lambda *_: "no"
        )
        for tick in range(1, 12)
    ]
    assert {held_back_cause(one) for one in found} == {None, "approve"}


def test_progress_is_told_once_for_each_record() -> None:
    told: list[int] = []
    run = known_run([1000.0] * 20, [4] * 20)
    hindsight_of([*run, *later(run, 100.0)], lambda: told.append(1))
    assert len(told) == 40
