"""A simulated surge, explained end to end: the true costs are known, so is the right answer."""

import dataclasses
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.helpers.pipeline_worlds import BOUNDS, TARGET_S, controller, world
from tidegate.cli import app
from tidegate.commands.oracle import best_of
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.limits import Limits
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.recording import RecordWriter
from tidegate.sim.microbatch.pipeline import simulate
from tidegate.sim.microbatch.world import World
from tidegate.view.hindsight.hindsight import Hindsight
from tidegate.view.hindsight.look_back import hindsight_of
from tidegate.workload.profile import steps

RUNNER = CliRunner()


def late_world(**changes) -> World:
    """As on Spark: arrivals are known when the first stage of their batch is over."""
    return world(prompt=False, latency_window_s=3.0, **changes)


def true_enough(rate: float) -> int:
    """The cores for a steady rate by the world's own costs; its keys leave an imbalance of 1.05."""
    for cores in range(1, 100):
        duration_s = (0.30 + 0.01 * cores) / max(1.0 - rate * 1.05e-3 / cores, 1e-9)
        if rate * 1.05e-3 < cores and 1.5 * duration_s <= TARGET_S:
            return cores
    raise AssertionError("no number of cores is enough")


@pytest.fixture(scope="module")
def surge() -> tuple[Record, ...]:
    return simulate(late_world(), controller()).records


@pytest.fixture(scope="module")
def judged(surge: tuple[Record, ...]) -> Hindsight:
    return dataclasses.replace(hindsight_of(surge), best=best_of(surge))


def test_what_was_enough_is_what_the_world_needs(judged: Hindsight) -> None:
    """1,000 rows/s, 4,000 from second 30 to 60, then 1,000 again; one core of error is allowed."""
    enough = judged.enough_by_tick
    for seconds, rate in (
        (slice(10, 29), 1000.0),
        (slice(40, 58), 4000.0),
        (slice(70, 118), 1000.0),
    ):
        for cores in enough[seconds]:
            assert cores is not None and abs(cores - true_enough(rate)) <= 1
    assert judged.most_enough <= true_enough(4000.0) + 1


def test_what_it_cost_lies_between_the_oracle_and_what_was_used(judged: Hindsight) -> None:
    assert judged.best is not None and judged.best.within > 0.98
    assert judged.best.core_seconds <= judged.enough_core_seconds < judged.core_seconds
    left = judged.enough_core_seconds + judged.above_core_seconds - judged.below_core_seconds
    assert left == pytest.approx(judged.core_seconds)
    assert judged.above["backlog"] > 0.0 and judged.above["waiting"] > 0.0


def test_the_surge_was_met_too_late_and_nobody_could_know(judged: Hindsight) -> None:
    late = [one for one in judged.verdicts if one.fault and one.fault.kind == "late_out"]
    assert late and all(30.0 <= one.at_s <= 34.0 for one in late)
    assert late[0].fault is not None and "rose faster than forecast" in late[0].fault.why
    assert 0.0 < judged.missed_s <= 8.0
    assert set(judged.missed) <= {"short", "backlog", "slow"}


def test_a_long_cooldown_costs_what_hindsight_says() -> None:
    """No core may be released for 90 s after a change: that keeps a surge's cores a minute more."""
    load = steps([(0, 1000.0), (20, 4000.0), (40, 1000.0)])
    bounded = Limits(scale_in_cooldown_s=90.0)
    slow = simulate(late_world(profile=load, seconds=150.0), controller(limits=bounded)).records
    quick = simulate(late_world(profile=load, seconds=150.0), controller()).records
    held, usual = hindsight_of(slow), hindsight_of(quick)
    assert "cooldown" not in usual.above
    more = held.core_seconds - usual.core_seconds
    assert held.above["cooldown"] == pytest.approx(more, rel=0.25)
    late = [one.fault for one in held.verdicts if one.fault and one.fault.kind == "late_in"]
    assert len(late) == 1 and "a cooldown after the last change" in late[0].why


def test_cores_that_take_long_to_come_are_the_reason() -> None:
    slow = simulate(late_world(grant_s=15.0), controller()).records
    late = [
        one.fault
        for one in hindsight_of(slow).verdicts
        if one.fault and one.fault.kind == "late_out"
    ]
    assert late and "they came" in late[0].why and late[0].missed_s > 10.0


def test_a_maximum_that_is_too_low_is_the_reason() -> None:
    bound = dataclasses.replace(BOUNDS, most=4)
    found = hindsight_of(simulate(late_world(), controller(bounds=bound)).records)
    assert max(found.missed, key=lambda cause: found.missed[cause]) == "maximum"
    assert found.most_enough == 4


def test_a_fixed_number_of_cores_is_a_minimum_or_the_policys_choice() -> None:
    static = new_controller(
        Assembly(target=Target(TARGET_S), bounds=BOUNDS, policy="static", cores=12)
    )
    found = hindsight_of(simulate(late_world(cores=12, seconds=60.0), static).records)
    assert set(found.above) == {"policy"} and found.verdicts == () and found.missed == {}


def test_a_dry_run_still_tells_what_was_enough() -> None:
    dry = controller(limits=Limits(dry_run=True))
    found = hindsight_of(simulate(late_world(cores=10, seconds=60.0), dry).records)
    assert found.dry_run and found.verdicts == ()
    assert found.enough_by_tick[20] is not None
    assert abs(found.enough_by_tick[20] - true_enough(1000.0)) <= 1


def test_the_command_explains_it(surge: tuple[Record, ...], tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "ck") as writer:
        for one in surge:
            writer.write(one)
    where, page = str(tmp_path / "ck"), tmp_path / "run.html"
    said = RUNNER.invoke(app, ["explain", where], env={"COLUMNS": "80"}).stdout
    assert max(len(line) for line in said.splitlines()) <= 80 and "…" not in said
    text = " ".join(said.split())
    for part in (
        "In hindsight",
        "core-seconds would have been enough for the load that came",
        "With the future known, ",
        "The target was missed for",
        "1 of 4 decisions was wrong in hindsight: 1 scaled out too late",
        "Core-seconds above enough, and why",
        "scale_in_after",
    ):
        assert part in text, part
    answer = RUNNER.invoke(app, ["explain", where, "--json", "--html", str(page)])
    found = json.loads(answer.stdout)["hindsight"]
    assert found["known"] and not found["dry_run"] and found["oracle_estimated"] is False
    assert found["oracle_core_seconds"] < found["enough_core_seconds"] < found["core_seconds"]
    assert sum(one["core_seconds"] for one in found["above"]) == pytest.approx(
        found["above_core_seconds"], abs=1.0
    )
    assert found["wrong_by_kind"]["late_out"] == 1
    assert {one["judgement"] for one in found["verdicts"]} <= {"right", "wrong", "unknown"}
    html = page.read_text()
    assert 'id="hindsight"' in html and 'id="wrong"' in html and 'id="above"' in html
    assert "would have been enough" in html


def test_the_oracle_says_nothing_of_a_run_whose_target_was_changed(
    surge: tuple[Record, ...],
) -> None:
    changed = list(surge)
    made = dataclasses.replace(Assembly.of(surge[0].assembly or {}), target=Target(3.0))
    changed[60] = dataclasses.replace(changed[60], assembly=made.document())
    assert best_of(changed) is None and best_of(surge) is not None
    assert best_of([dataclasses.replace(surge[0], assembly=None), *surge[1:]]) is None
