"""Scale-outs that were too late or without need, with the reason that the records show."""

import pytest

from tests.helpers.past_runs import TARGET, causes, changes, past
from tidegate.control.bounds import Bounds
from tidegate.control.floors import floors_of
from tidegate.control.learning.outliers import COLD, FIRST
from tidegate.view.hindsight.core_change import ChangedCores
from tidegate.view.hindsight.past_tick import PastTick
from tidegate.view.hindsight.scale_out import late_out, needless_out
from tidegate.view.hindsight.settings import InForce

CALM = {"forecast_rate": 1000.0, "margin": 1.0, "needed_cores": 2.0}


def judged(ticks: list[PastTick]) -> tuple[ChangedCores, dict[int, str]]:
    (change,) = changes(ticks)
    return change, causes(ticks)


def test_a_surge_that_no_forecast_saw() -> None:
    """2 cores until second 10, 4 needed from then on; asked for at once, three seconds are late."""
    ticks = past(
        enough=[2] * 10 + [4] * 40,
        granted=[2] * 11 + [4] * 39,
        missed=(11, 12, 13),
        decided={10: 4},
        beliefs=CALM,
    )
    fault = late_out(*judged(ticks))
    assert fault is not None and fault.kind == "late_out"
    assert fault.missed_s == 3.0 and fault.option == "floors"
    assert fault.why == (
        "4 cores were needed from second 10 on; the load rose faster than forecast:"
        " 1,000 rows/s were forecast, 2,000 came"
    )
    assert needless_out(*judged(ticks)) is None


def test_cores_that_took_long_to_come() -> None:
    ticks = past(
        enough=[2] * 10 + [4] * 40,
        granted=[2] * 21 + [4] * 29,
        asked=[2] * 11 + [4] * 39,
        missed=range(12, 24),
        decided={10: 4},
        beliefs=CALM,
        grant_s=10.0,
    )
    fault = late_out(*judged(ticks))
    assert fault is not None and fault.missed_s == 12.0
    assert fault.why.endswith("asked for at second 11, they came 11 s later")


def test_cores_that_were_asked_for_in_time_and_came_too_late() -> None:
    """When it is decided 2 cores are still enough; the load rises before the 4 are there."""
    ticks = past(
        enough=[2] * 13 + [4] * 37,
        granted=[2] * 21 + [4] * 29,
        asked=[2] * 11 + [4] * 39,
        missed=range(15, 24),
        decided={10: 4},
        beliefs={**CALM, "forecast_rate": 2000.0},
    )
    fault = late_out(*judged(ticks))
    assert fault is not None and "from second 13 on" in fault.why and "came 11 s later" in fault.why


def test_cores_that_never_came() -> None:
    ticks = past(
        enough=[2] * 10 + [4] * 20,
        granted=[2] * 30,
        asked=[2] * 11 + [4] * 19,
        missed=range(12, 30),
        decided={10: 4},
        beliefs=CALM,
    )
    fault = late_out(*judged(ticks))
    assert fault is not None and "they had not come 19 s later" in fault.why


@pytest.mark.parametrize(
    ("held_back", "option", "words"),
    [
        (
            "the last change was 3 s ago, and 1 min must lie between two (between_changes)",
            "between_changes",
            "between two changes",
        ),
        ("no changes within 09:00-10:00", "excluded", "nothing may change"),
        ("refused by approve: no", "approve", "`approve`"),
        (
            "the run began 2 s ago, and the first change waits for 30 s (first_change)",
            "first_change",
            "first change",
        ),
        ("cooling down for 30 s before adding cores", None, "cooldown"),
    ],
)
def test_a_change_that_was_held_back(held_back: str, option: str | None, words: str) -> None:
    ticks = past(
        enough=[2] * 10 + [4] * 40,
        granted=[2] * 16 + [4] * 34,
        missed=range(11, 20),
        held=dict.fromkeys(range(10, 15), (4, held_back)),
        decided={15: 4},
        beliefs={**CALM, "forecast_rate": 2000.0},
    )
    fault = late_out(*judged(ticks))
    assert fault is not None and fault.option == option
    assert "held back for 5 s" in fault.why and words in fault.why


def test_rows_that_cost_more_than_was_learned() -> None:
    ticks = past(
        enough=[2] * 10 + [4] * 40,
        believed=[2] * 50,
        granted=[2] * 11 + [4] * 39,
        missed=(11, 12),
        decided={10: 4},
        rates=[1000.0] * 50,
        beliefs=CALM,
    )
    fault = late_out(*judged(ticks))
    assert fault is not None and "batches took longer than was learned" in fault.why


def test_a_policy_that_hesitates() -> None:
    ticks = past(
        enough=[2] * 10 + [4] * 40,
        granted=[2] * 21 + [4] * 29,
        missed=range(12, 25),
        decided={20: 4},
        policy="threshold",
    )
    fault = late_out(*judged(ticks))
    assert fault is not None and fault.option == "policy"
    assert "decided 10 s later" in fault.why


def test_a_run_that_began_with_too_few_cores() -> None:
    ticks = past(enough=[4] * 40, granted=[2] * 3 + [4] * 37, missed=(1, 2, 3, 4), decided={2: 4})
    fault = late_out(*judged(ticks))
    assert fault is not None and fault.option == "cores"
    assert fault.why.endswith("from second 0 on, and the run began with 2 cores")


def test_without_a_missed_second_it_was_in_time() -> None:
    ticks = past(
        enough=[2] * 10 + [4] * 40, granted=[2] * 11 + [4] * 39, decided={10: 4}, beliefs=CALM
    )
    assert late_out(*judged(ticks)) is None
    assert needless_out(*judged(ticks)) is None


def test_misses_for_another_reason_are_not_blamed_on_it() -> None:
    """The only late second is that of a first batch, before more cores were needed."""
    ticks = past(
        enough=[2] * 10 + [4] * 40,
        granted=[2] * 11 + [4] * 39,
        missed=(1,),
        outliers={1: FIRST},
        decided={10: 4},
        beliefs=CALM,
    )
    assert late_out(*judged(ticks)) is None


def test_a_forecast_rise_that_did_not_come() -> None:
    ticks = past(
        enough=[2] * 60,
        granted=[2] * 11 + [4] * 49,
        decided={10: 4},
        beliefs={"forecast_rate": 1800.0, "margin": 1.1, "needed_cores": 4.0},
    )
    fault = needless_out(*judged(ticks))
    assert fault is not None and fault.kind == "needless_out"
    assert fault.core_seconds == 2 * 30.0
    assert fault.why == (
        "the load that was forecast did not come: 1,980 rows/s were forecast, 1,000 came at most"
    )


@pytest.mark.parametrize("outlier", [FIRST, COLD])
def test_a_cold_batch_is_no_overload(outlier: str) -> None:
    """A first batch of 11 s against a target of 2 s, and rows that 2 cores process in time."""
    ticks = past(
        enough=[2] * 60,
        granted=[2] * 11 + [8] * 49,
        missed=(9, 10, 11),
        outliers={9: outlier},
        decided={10: 8},
        backlog=11_000.0,
    )
    fault = needless_out(*judged(ticks))
    assert fault is not None and fault.option == "first_change"
    assert fault.why.startswith("first batches ran long") and fault.core_seconds == 6 * 30.0


def test_a_cost_that_was_believed_too_high() -> None:
    ticks = past(
        enough=[2] * 60,
        believed=[4] * 60,
        granted=[2] * 11 + [4] * 49,
        decided={10: 4},
        beliefs=CALM,
    )
    fault = needless_out(*judged(ticks))
    assert fault is not None and fault.why == "batches were believed to take longer than they did"


def test_a_reserve_for_a_surge_that_did_not_come() -> None:
    ticks = past(
        enough=[2] * 60,
        granted=[2] * 11 + [3] * 49,
        decided={10: 3},
        beliefs=CALM,
        reason="a surge to 2 times the load would break the target, target 2 s",
    )
    fault = needless_out(*judged(ticks))
    assert fault is not None and "no surge came" in fault.why


def test_a_single_slow_batch() -> None:
    ticks = past(
        enough=[2] * 60,
        granted=[2] * 11 + [3] * 49,
        missed=(9, 10),
        decided={10: 3},
        beliefs=CALM,
    )
    fault = needless_out(*judged(ticks))
    assert fault is not None and "single batches" in fault.why


def test_cores_for_rows_that_had_piled_up_are_not_without_need() -> None:
    """More rows wait than a run on target has: they are to be worked off."""
    ticks = past(
        enough=[2] * 60,
        granted=[2] * 11 + [4] * 49,
        missed=(9, 10, 11, 12),
        decided={10: 4},
        beliefs=CALM,
        backlog=20_000.0,
    )
    assert needless_out(*judged(ticks)) is None


def test_cores_that_are_needed_within_the_time_it_is_judged_by_are_not_without_need() -> None:
    soon = past(
        enough=[2] * 35 + [3] * 25, granted=[2] * 11 + [4] * 49, decided={10: 4}, beliefs=CALM
    )
    assert needless_out(*judged(soon)) is None
    late = past(
        enough=[2] * 45 + [3] * 15, granted=[2] * 11 + [4] * 49, decided={10: 4}, beliefs=CALM
    )
    assert needless_out(*judged(late)) is not None
    slow = past(
        enough=[2] * 45 + [3] * 15,
        granted=[2] * 11 + [4] * 49,
        decided={10: 4},
        beliefs=CALM,
        grant_s=15.0,
    )
    assert needless_out(*judged(slow)) is None, "cores take 15 s to come, so it looks 45 s ahead"


def test_a_floor_of_the_schedule_asks_for_cores_that_nothing_needs() -> None:
    always = floors_of(["00:00-24:00 cores>=4"])
    ticks = past(
        enough=[2] * 60,
        granted=[2] * 11 + [4] * 49,
        decided={10: 4},
        beliefs=CALM,
        settings=InForce(TARGET, Bounds(1, 64), always),
    )
    fault = needless_out(*judged(ticks))
    assert fault is not None and fault.option == "floors"


def test_another_policy_is_named() -> None:
    ticks = past(enough=[2] * 60, granted=[2] * 11 + [4] * 49, decided={10: 4}, policy="threshold")
    fault = needless_out(*judged(ticks))
    assert fault is not None and fault.why == "policy `threshold` asked for them"
