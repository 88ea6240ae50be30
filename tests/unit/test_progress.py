"""How far a long piece of work is, and how long it still takes."""

import pytest

from tidegate.progress import HowFar, Progress, in_words


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def pass_s(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_before_anything_is_expected_only_the_time_is_known(clock: Clock) -> None:
    progress = Progress(clock=clock)
    progress.doing("starting Spark")
    clock.pass_s(7.0)
    assert progress.how_far() == HowFar("starting Spark", 7.0)
    assert progress.how_far().words == "running for 7 s"


def test_steps_that_are_over_tell_how_long_the_others_take(clock: Clock) -> None:
    progress = Progress(clock=clock)
    clock.pass_s(30.0)  # preparation, which says nothing about the steps
    progress.expect(4)
    progress.step("first")
    assert progress.how_far().left_s is None
    clock.pass_s(10.0)
    progress.step("second")
    now = progress.how_far()
    assert (now.what, now.share, now.left_s) == ("second", 0.25, 30.0)
    assert now.words == "25 % done, about 30 s left"


def test_a_step_goes_on_with_the_clock(clock: Clock) -> None:
    progress = Progress(clock=clock)
    progress.expect(2)
    progress.step("first")
    clock.pass_s(100.0)
    progress.step("second")
    clock.pass_s(40.0)
    now = progress.how_far()
    assert now.share == pytest.approx(0.7)
    assert now.left_s == pytest.approx(60.0)


def test_a_step_that_takes_longer_than_expected_is_never_over_by_the_clock(clock: Clock) -> None:
    progress = Progress(clock=clock)
    progress.expect(3)
    progress.step("first")
    clock.pass_s(10.0)
    progress.step("second")
    clock.pass_s(95.0)
    now = progress.how_far()
    assert now.share == pytest.approx(1.95 / 3)
    assert now.left_s == pytest.approx(10.0 + 5.0)  # the third, and a twentieth of this one


def test_steps_have_weights(clock: Clock) -> None:
    progress = Progress(clock=clock)
    progress.expect(100.0)
    progress.step("warm-up", 20.0)
    clock.pass_s(40.0)
    progress.step("run", 80.0)
    assert progress.how_far().left_s == pytest.approx(160.0)


def test_what_was_expected_counts_until_the_work_tells_better(clock: Clock) -> None:
    progress = Progress(clock=clock)
    progress.expect(1.0, takes_s=600.0)
    progress.step("all of it")
    clock.pass_s(60.0)
    assert progress.how_far().left_s == pytest.approx(540.0)
    progress.expect(10.0)  # the experiment itself knows its parts, and takes as long in all
    assert progress.how_far().left_s == pytest.approx(600.0)
    progress.step("first")
    clock.pass_s(20.0)
    progress.step("second")
    left_s = progress.how_far().left_s
    assert left_s is not None and 9 * 20.0 < left_s < 9 * 60.0


def test_a_part_of_a_step_can_be_told(clock: Clock) -> None:
    progress = Progress(clock=clock)
    progress.expect(2)
    progress.step("first")
    clock.pass_s(10.0)
    progress.step("second")
    progress.within(0.5)
    assert progress.how_far().share == 0.75
    progress.within(7.0)
    assert progress.how_far().share == 1.0


def test_work_that_counts_by_itself_is_asked(clock: Clock) -> None:
    progress = Progress(clock=clock)
    done = [0.0, 0.0]
    progress.expect(2)
    progress.follow(lambda: sum(done))
    assert progress.how_far().left_s is None
    done[0] = 0.5
    clock.pass_s(10.0)
    now = progress.how_far()
    assert (now.share, now.left_s) == (0.25, 30.0)


def test_what_is_done_can_be_told_in_the_unit_of_the_total(clock: Clock) -> None:
    progress = Progress(clock=clock)
    progress.expect(1000)
    clock.pass_s(3.0)
    progress.reached(100, "tick 100")
    now = progress.how_far()
    assert (now.what, now.share, now.left_s) == ("tick 100", 0.1, pytest.approx(27.0))


def test_durations_are_in_the_unit_of_a_person_who_waits() -> None:
    assert in_words(3.4) == "3 s"
    assert in_words(119.0) == "119 s"
    assert in_words(119.8) == "2 min"
    assert in_words(640.0) == "11 min"
    assert in_words(9000.0) == "2.5 h"
