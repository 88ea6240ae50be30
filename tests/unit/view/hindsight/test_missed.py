"""Seconds above the target have one cause each."""

from tests.helpers.past_runs import TARGET, causes, past, with_reachable
from tidegate.control.bounds import Bounds
from tidegate.control.learning.outliers import FIRST
from tidegate.view.hindsight.settings import InForce


def test_too_few_cores_and_what_they_leave_behind() -> None:
    ticks = past(enough=[2, 4, 4, 4, 4, 2], granted=[2, 2, 2, 6, 6, 6], missed=(1, 2, 3, 4))
    assert causes(ticks) == {1: "short", 2: "short", 3: "backlog", 4: "backlog"}


def test_rows_that_were_late_only_after_the_cores_had_come() -> None:
    """The latency of a tick is that of batches that began earlier."""
    ticks = past(enough=[2, 4, 4, 4], granted=[2, 2, 6, 6], missed=(2, 3))
    assert causes(ticks) == {2: "backlog", 3: "backlog"}


def test_the_maximum_and_the_share_of_other_pipelines() -> None:
    limit = InForce(TARGET, Bounds(1, 4))
    ticks = past(enough=[4] * 3, wanted=[9] * 3, granted=[4] * 3, missed=(1, 2), settings=limit)
    assert causes(ticks) == {1: "maximum", 2: "maximum"}
    shared = past(
        enough=[2] * 3, wanted=[9] * 3, granted=[2] * 3, missed=(1,), settings=limit, share=2
    )
    assert causes(shared) == {1: "share"}


def test_a_target_that_no_number_of_cores_holds() -> None:
    ticks = with_reachable(past(enough=[2] * 3, granted=[4] * 3, missed=(0, 1)), reachable=False)
    assert causes(ticks) == {0: "out_of_reach", 1: "out_of_reach"}


def test_first_batches_slow_batches_and_rows_that_were_there_before() -> None:
    cold = past(enough=[2] * 5, granted=[2] * 5, missed=(1, 2, 3, 4), outliers={1: FIRST})
    assert set(causes(cold).values()) == {"cold"}
    slow = past(enough=[2] * 5, granted=[2] * 5, missed=(2, 3))
    assert causes(slow) == {2: "slow", 3: "slow"}
    behind = past(enough=[2] * 5, granted=[2] * 5, missed=(0, 1), backlog=50_000.0)
    assert causes(behind) == {0: "backlog", 1: "backlog"}


def test_what_is_not_known_is_said_to_be_unknown() -> None:
    ticks = past(enough=[None, None, 2], granted=[2] * 3, missed=(0, 1))
    assert causes(ticks) == {0: "unknown", 1: "unknown"}
