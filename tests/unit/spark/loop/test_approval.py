"""What a user's function may answer, and what counts as no."""

import threading

import pytest

from tests.helpers.pipeline_worlds import measured
from tidegate.control.decision import Decision
from tidegate.spark.loop.approval import AskedUser

WISH = Decision(reason="more load", cores=4)
NOW = measured(1)


def test_yes_no_and_something_else() -> None:
    other = Decision(reason="two are enough", cores=2)
    assert AskedUser(lambda decision, now: True)(WISH, NOW) == WISH
    assert AskedUser(lambda decision, now: False)(WISH, NOW) == "it returned False"
    assert AskedUser(lambda decision, now: other)(WISH, NOW) == other
    seen = []
    AskedUser(lambda decision, now: bool(seen.append((decision, now))))(WISH, NOW)
    assert seen == [(WISH, NOW)]


@pytest.mark.parametrize(("answer", "said"), [(None, "None"), (1, "a int"), ("yes", "a str")])
def test_whatever_is_not_a_clear_yes_is_a_no(answer: object, said: str) -> None:
    refusal = AskedUser(lambda decision, now: answer)(WISH, NOW)  # type: ignore[arg-type,return-value]
    assert refusal == f"it returned {said}; return True, False or another Decision"


def test_an_error_is_a_no_with_its_words() -> None:
    def frozen(decision: Decision, now: object) -> bool:
        raise RuntimeError("no changes before the release")

    assert AskedUser(frozen)(WISH, NOW) == "it raised RuntimeError: no changes before the release"


def test_one_that_hangs_is_a_no_and_is_not_asked_again_until_it_returns() -> None:
    goes_on, calls = threading.Event(), []

    def slow(decision: Decision, now: object) -> bool:
        calls.append(decision)
        return goes_on.wait(30.0)

    asked = AskedUser(slow, patience_s=0.01)
    try:
        for _ in range(3):
            assert "the function has had no answer for" in str(asked(WISH, NOW))
        assert len(calls) == 1
    finally:
        goes_on.set()
