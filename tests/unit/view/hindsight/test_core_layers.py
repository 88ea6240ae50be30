"""Cores above enough are divided among their causes, and the parts add up."""

from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.past_runs import TARGET, past
from tidegate.control.bounds import Bounds
from tidegate.control.floors import floors_of
from tidegate.view.hindsight.causes import ABOVE
from tidegate.view.hindsight.core_layers import layers
from tidegate.view.hindsight.settings import InForce

PLAN = {"needed_cores": 8.0, "forecast_rate": 1.0, "margin": 1.0}


def test_a_plan_is_taken_apart() -> None:
    """Enough are 2; 3 by the believed cost, 5 for the forecast, 8 with the reserve, 10 are held."""
    (tick,) = past(enough=[2], believed=[3], planned=[5], granted=[11], asked=[10], beliefs=PLAN)
    assert layers(tick) == {"cost": 1, "forecast": 2, "reserve": 3, "waiting": 2, "releasing": 1}


def test_a_minimum_comes_first_and_a_floor_of_the_schedule_after_it() -> None:
    always = floors_of(["00:00-24:00 cores>=6"])
    (tick,) = past(
        enough=[2],
        granted=[9],
        beliefs=PLAN,
        settings=InForce(TARGET, Bounds(4, 64), always),
    )
    assert layers(tick) == {"minimum": 2, "floors": 2, "reserve": 2, "waiting": 1}


def test_whole_executors_count_as_what_they_are() -> None:
    (tick,) = past(
        enough=[2], granted=[6], beliefs=PLAN, settings=InForce(TARGET, Bounds(3, 64), (), 2)
    )
    assert layers(tick) == {"minimum": 2, "reserve": 2}


def test_rows_that_piled_up_explain_all_cores_while_they_are_worked_off() -> None:
    (late,) = past(enough=[2], granted=[9], beliefs=PLAN, missed=(0,))
    assert layers(late) == {"backlog": 7}
    (behind,) = past(enough=[2], granted=[9], beliefs={**PLAN, "catch_up_s": 3.0})
    assert layers(behind) == {"backlog": 7}


def test_a_dry_run_a_policy_and_the_first_seconds_have_a_cause_of_their_own() -> None:
    (dry,) = past(
        enough=[2], granted=[9], beliefs=PLAN, settings=InForce(TARGET, Bounds(1, 64), dry_run=True)
    )
    assert layers(dry) == {"dry_run": 7}
    (other,) = past(enough=[2], granted=[9], policy="threshold")
    assert layers(other) == {"policy": 7}
    (learning,) = past(enough=[2], granted=[9])
    assert layers(learning) == {"learning": 7}


def test_nothing_is_above_enough_where_that_is_not_known_or_not_reached() -> None:
    unknown, short = past(enough=[None, 4], granted=[9, 3])
    assert layers(unknown) == {} and layers(short) == {}


@given(
    enough=st.integers(1, 20),
    granted=st.integers(1, 30),
    asked=st.integers(1, 30),
    believed=st.integers(1, 30),
    planned=st.integers(1, 30),
    needed=st.integers(1, 30),
    least=st.integers(1, 10),
    per_executor=st.integers(1, 4),
    known=st.booleans(),
    late=st.booleans(),
)
def test_the_layers_add_up_to_the_cores_above_enough(
    enough: int,
    granted: int,
    asked: int,
    believed: int,
    planned: int,
    needed: int,
    least: int,
    per_executor: int,
    known: bool,
    late: bool,
) -> None:
    (tick,) = past(
        enough=[enough],
        believed=[believed],
        planned=[planned],
        granted=[granted],
        asked=[asked],
        beliefs={"needed_cores": float(needed)} if known else None,
        missed=(0,) if late else (),
        settings=InForce(TARGET, Bounds(least, 64), (), per_executor),
    )
    found = layers(tick)
    assert sum(found.values()) == max(granted - enough, 0)
    assert set(found) <= set(ABOVE) and all(cores > 0 for cores in found.values())
