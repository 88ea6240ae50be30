"""Scale-ins that were too early or too late, with the reason that the records show."""

import pytest

from tests.helpers.past_runs import TARGET, changes, past
from tidegate.control.bounds import Bounds
from tidegate.view.hindsight.core_change import ChangedCores
from tidegate.view.hindsight.past_tick import PastTick
from tidegate.view.hindsight.scale_in import early_in, late_in
from tidegate.view.hindsight.settings import InForce

NEEDS_TWO = {"needed_cores": 2.0}


def first(ticks: list[PastTick]) -> ChangedCores:
    return changes(ticks)[0]


def test_cores_that_had_to_be_asked_for_again_at_the_same_load() -> None:
    ticks = past(
        enough=[2] * 12 + [3] * 38,
        granted=[4] * 11 + [2] * 10 + [4] * 29,
        decided={10: 2, 20: 4},
        rates=[1000.0] * 50,
    )
    fault = early_in(first(ticks))
    assert fault is not None and fault.kind == "early_in" and fault.option == "scale_in_after"
    assert fault.why == (
        "the cores had to be asked for again after 10 s, at the same load: 2 cores were not enough"
        " for it"
    )
    assert fault.missed_s == 0.0


def test_a_load_that_came_back() -> None:
    ticks = past(
        enough=[2] * 20 + [4] * 30,
        granted=[4] * 11 + [2] * 10 + [4] * 29,
        missed=(20, 21),
        decided={10: 2, 20: 4},
    )
    fault = early_in(first(ticks))
    assert fault is not None and fault.missed_s == 2.0
    assert "after 10 s: the load rose from 1,000 to 2,000 rows/s" in fault.why


def test_a_target_that_was_missed_afterwards() -> None:
    ticks = past(
        enough=[2] * 15 + [3] * 35,
        granted=[4] * 11 + [2] * 39,
        missed=range(17, 50),
        decided={10: 2},
        rates=[1000.0] * 50,
    )
    fault = early_in(first(ticks))
    assert fault is not None and fault.why.startswith("the target was missed after 7 s")
    assert fault.missed_s == 24.0, "within the 30 s that it is judged by"


def test_cores_that_are_needed_much_later_were_released_in_time() -> None:
    ticks = past(
        enough=[2] * 45 + [4] * 15, granted=[4] * 11 + [2] * 35 + [4] * 14, decided={10: 2, 45: 4}
    )
    assert early_in(first(ticks)) is None


def test_a_scale_out_without_need_does_not_make_the_scale_in_before_it_wrong() -> None:
    ticks = past(enough=[2] * 60, granted=[4] * 11 + [2] * 10 + [4] * 39, decided={10: 2, 20: 4})
    assert early_in(first(ticks)) is None


@pytest.mark.parametrize(
    ("changed", "option", "words"),
    [
        ({}, "scale_in_after", "before cores are released"),
        (
            {"held": "90 s must lie between two (between_changes)"},
            "between_changes",
            "two changes",
        ),
        ({"held": "no changes within 09:00-10:00"}, "excluded", "nothing may change"),
        ({"beliefs": {"needed_cores": 6.0}}, None, "a reserve"),
        ({"planned": [6] * 60, "beliefs": {"needed_cores": 6.0}}, None, "was forecast"),
        ({"believed": [6] * 60, "beliefs": {"needed_cores": 6.0}}, None, "take longer"),
        ({"settings": InForce(TARGET, Bounds(6, 64))}, "cores", "minimum"),
        ({"policy": "threshold", "beliefs": {}}, "policy", "policy"),
    ],
)
def test_cores_that_were_held_above_enough_for_long(
    changed: dict, option: str | None, words: str
) -> None:
    """2 cores are enough from second 10 on, and 6 are held until second 50."""
    given = dict(changed)
    held_back = given.pop("held", None)
    held = dict.fromkeys(range(10, 50), (2, held_back)) if held_back else None
    ticks = past(
        enough=[6] * 10 + [2] * 50,
        granted=[6] * 51 + [2] * 9,
        decided={50: 2},
        held=held,
        **{"beliefs": NEEDS_TWO, **given},
    )
    fault = late_in(first(ticks))
    assert fault is not None and fault.kind == "late_in" and fault.option == option
    assert fault.why.startswith("2 cores had been enough for 41 s; mostly ") and words in fault.why
    assert fault.core_seconds == 41 * 4.0


def test_a_short_wait_is_not_late() -> None:
    ticks = past(
        enough=[6] * 30 + [2] * 30, granted=[6] * 51 + [2] * 9, decided={50: 2}, beliefs=NEEDS_TWO
    )
    assert late_in(first(ticks)) is None


def test_a_wait_that_a_slow_cluster_makes_reasonable_is_not_late() -> None:
    ticks = past(
        enough=[6] * 10 + [2] * 50,
        granted=[6] * 51 + [2] * 9,
        decided={50: 2},
        beliefs=NEEDS_TWO,
        grant_s=20.0,
    )
    assert late_in(first(ticks)) is None


def test_time_before_the_cores_were_there_does_not_count() -> None:
    ticks = past(
        enough=[2] * 60,
        granted=[2] * 31 + [6] * 20 + [2] * 9,
        decided={30: 6, 50: 2},
        beliefs=NEEDS_TWO,
    )
    assert late_in(changes(ticks)[1]) is None
