"""How long cores still take that were asked for."""

from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.pipeline_worlds import measured
from tidegate.control.latency.awaited_cores import AwaitedCores

TICK_S = measured(0).step_s


def left_s(*granted: int, asked: int = 10, grant_s: float | None = None) -> float:
    """What is left after as many ticks, with so many cores granted in each."""
    awaited = AwaitedCores()
    for tick, count in enumerate(granted):
        last = measured(tick, cores=asked, granted=count, grant_s=grant_s)
        awaited.observe(last)
    return awaited.left_s(last)


def test_nothing_is_awaited_once_all_have_come() -> None:
    assert left_s(2, 2, 2, 10, grant_s=20.0) == 0.0


@given(st.integers(1, 30), st.floats(0.5, 60.0))
def test_a_usual_grant_is_over_when_it_should_be(ticks: int, grant_s: float) -> None:
    waited_s = float(ticks - 1)
    left = left_s(*[2] * ticks, grant_s=grant_s)
    assert left == (grant_s - waited_s if waited_s < grant_s else max(waited_s, TICK_S))


@given(st.integers(1, 30))
def test_what_has_taken_a_while_takes_as_long_again(ticks: int) -> None:
    assert left_s(*[2] * ticks) == max(ticks - 1, TICK_S), "none comes before the next tick"


def test_those_that_come_begin_the_wait_for_the_others_anew() -> None:
    assert left_s(2, 2, 2, 2, 4, 4, grant_s=20.0) == 19.0
