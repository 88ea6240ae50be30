"""What figure 5 makes of runs with nothing shed."""

import pytest

from tests.unit.papers.overload.outcomes import outcome
from tidegate.papers.overload.runs import QueryRun, left_s
from tidegate.papers.overload.unshed import cases, growth, told


def unshed(queries: int) -> QueryRun:
    return QueryRun(queries=queries, target_s=1.0, shed=False)


def test_nothing_is_shed_in_any_run() -> None:
    assert not any(one.shed for quick in (True, False) for one in cases(quick))
    assert {one.queries for one in cases(quick=False)} == {80, 100, 200, 1000}


def test_growth_is_that_of_the_judged_time() -> None:
    assert growth(outcome(grows=0.0)) == pytest.approx(1.0)
    # Judged are ticks 10 to 29: the last third ends at 29, the first at 15.
    assert growth(outcome(grows=1.0)) == pytest.approx(30.0 / 16.0)


def test_latency_that_grows_is_what_an_overload_shows() -> None:
    runs = [(unshed(80), outcome(80)), (unshed(200), outcome(grows=1.0))]
    found = told(runs, "a note")
    assert all(aim.met for aim in found.aims)
    assert found.notes[0] == "a note"
    assert [line.name for line in found.pictures[0].lines] == [
        "80 queries, no shedding",
        "200 queries, no shedding",
    ]


def test_latency_that_does_not_grow_is_no_overload() -> None:
    missed = [aim.name for aim in told([(unshed(200), outcome())], "").aims if not aim.met]
    assert missed == ["200 queries, no shedding: latency at the end over that at the beginning"]


def test_what_is_left_counts_starts_and_long_last_batches() -> None:
    one = QueryRun(queries=200, target_s=1.0, shed=False, seconds=50.0, more_s=60.0)
    assert left_s([one, one]) > 220.0
