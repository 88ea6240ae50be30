"""A prediction that was off, by more than a factor, is told apart from a wrong forecast."""

import pytest

from tests.helpers.known_cost import known_run
from tests.helpers.past_runs import causes, changes, past
from tidegate.view.hindsight.look_back import hindsight_of
from tidegate.view.hindsight.model_off import model_off, question_of, settled
from tidegate.view.hindsight.past_tick import PastTick


def quiet(**changed) -> list[PastTick]:
    """4 cores from tick 10 on, at 1,000 rows/s; every tick takes 1 s."""
    given = {
        "enough": [2] * 40,
        "granted": [2] * 11 + [4] * 29,
        "decided": {10: 4},
        "rates": [1000.0] * 40,
        **changed,
    }
    return past(**given)


@pytest.mark.parametrize(
    ("predicted_s", "said"),
    [
        (0.5, "mean 0.50 s predicted for the load that came, 1.00 s measured"),
        (2.0, "batches took shorter than was learned"),
        (0.8, None),
        (1.4, None),
        (None, None),
    ],
)
def test_the_factor_decides(predicted_s: float | None, said: str | None) -> None:
    ticks = quiet()
    fault = model_off(changes(ticks)[0], predicted_s, causes(ticks))
    if said is None:
        assert fault is None
    else:
        assert fault is not None and fault.kind == "model_off" and said in fault.why


def test_the_first_seconds_after_a_change_do_not_count() -> None:
    (change,) = changes(quiet())
    assert settled(change)[0] == 17
    question = question_of(change)
    assert question is not None and question.rate == 1000.0 and question.cores == {"main": 4}


def test_a_load_that_moves_is_never_settled() -> None:
    moving = quiet(rates=[1000.0 * 1.2 ** (n % 2) for n in range(40)])
    assert settled(changes(moving)[0]) == []
    assert question_of(changes(moving)[0]) is None
    draining = quiet(backlog=9000.0)
    assert settled(changes(draining)[0]) == []


def test_ticks_that_missed_for_a_reason_of_their_own_do_not_count() -> None:
    late = quiet(enough=[2] * 11 + [6] * 29, missed=range(11, 40))
    assert model_off(changes(late)[0], 1.0, causes(late)) is None


def test_a_pipeline_that_becomes_slower_is_found_from_its_records() -> None:
    """Batches take 2.2 times as long from the change on, which no model can know before."""
    run = known_run([1000.0] * 40, [3] * 21 + [4] * 19, decided={20: 4}, slower=2.2, slower_from=21)
    (verdict,) = hindsight_of(run).verdicts
    assert verdict.fault is not None and verdict.fault.kind == "model_off"
    steady = known_run([1000.0] * 40, [4] * 21 + [3] * 19, decided={20: 3})
    (right,) = hindsight_of(steady).verdicts
    assert right.fault is None and right.unknown is None
