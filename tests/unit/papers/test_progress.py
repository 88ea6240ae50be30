"""How far an experiment has come is said from time to time, with the time that is left."""

from tidegate.papers.progress import RunsLeft, in_words


def test_it_says_how_long_the_other_runs_take() -> None:
    said: list[str] = []
    now = iter([0.0, 4.0, 12.0, 14.0, 40.0])
    left = RunsLeft(said.append, "weeks", 4, every_s=10.0, clock=lambda: next(now))
    for _ in range(4):
        left.one_more()
    assert said == ["weeks: 2 of 4, about 12 s left", "weeks: all 4 done in 40 s"]


def test_nothing_is_told_from_the_first_of_very_many_runs() -> None:
    said: list[str] = []
    now = iter([0.0, 60.0, 61.0, 62.0])
    left = RunsLeft(said.append, "minutes", 100, clock=lambda: next(now))
    left.one_more()
    assert said == []
    left.one_more()
    assert said == ["minutes: 2 of 100, about 50 min left"]


def test_durations_are_in_the_unit_of_a_person_who_waits() -> None:
    assert in_words(3.4) == "3 s"
    assert in_words(119.0) == "119 s"
    assert in_words(119.8) == "2 min"
    assert in_words(640.0) == "11 min"
