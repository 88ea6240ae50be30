"""What figures 6 and 7 make of runs."""

import pytest

from tests.unit.papers.overload.outcomes import outcome
from tidegate.errors import AskedWrongly
from tidegate.papers.figure import Asked
from tidegate.papers.overload.held import cases, figure_6, off_target, told
from tidegate.papers.overload.runs import QueryRun


def held(queries: int, target_s: float) -> QueryRun:
    return QueryRun(queries=queries, target_s=target_s, shed=True)


def test_the_papers_targets_run_with_200_queries_and_thousands_with_real_work() -> None:
    whole = cases(quick=False)
    assert {one.target_s for one in whole if one.queries == 200} == {0.5, 1.0, 2.0, 3.0}
    assert all(one.stretched == (one.queries <= 1000) for one in whole)
    assert {one.queries for one in whole} >= {20, 120, 200, 1000, 3000}
    assert all(one.shed for one in whole)


def test_means_at_their_targets_meet_the_aims() -> None:
    found = told([(held(200, t), outcome(mean_s=1.05 * t)) for t in (1.0, 2.0, 3.0)], "a note")
    assert all(aim.met for aim in found.aims)
    assert not found.wrong and found.about_answers


def test_a_mean_beside_its_target_misses_the_aim_from_a_second_up() -> None:
    runs = [(held(200, t), outcome(mean_s=1.2 * t)) for t in (0.5, 1.0)]
    missed = [aim.name for aim in told(runs, "").aims if not aim.met]
    assert missed == ["200 queries, target 1 s: mean latency off its target"]
    assert off_target(*runs[0]) == pytest.approx(0.2, abs=0.01)


def test_a_wrong_average_is_a_wrong_answer() -> None:
    found = told([(held(200, 1.0), outcome(correct=False))], "")
    assert found.wrong
    assert "200 queries, target 1 s: 3 of 40 averages differ" in found.notes


def test_a_query_that_lost_a_row_more_is_found() -> None:
    found = told([(held(200, 1.0), outcome(lost_by_one=1))], "")
    assert [aim.value for aim in found.wrong] == [1]


def test_every_querys_rows_are_told_to_the_row() -> None:
    rows = {one.name: one.ours for one in told([(held(200, 1.0), outcome())], "").compared}
    assert rows["200 queries, target 1 s: rows of each query"] == (
        "40.0% kept, 400/s; in all 30,000 = 12,000 kept + 18,000 lost"
    )


def test_the_paper_tells_nothing_of_more_than_200_queries() -> None:
    runs = [(held(queries, 1.0), outcome(queries)) for queries in (80, 200, 1000, 3000)]
    paper = {
        (case.queries, what): next(
            one.paper
            for one in told(runs, "").compared
            if one.name.startswith(f"{case.words}: {what}")
        )
        for case, _ in runs
        for what in ("mean latency", "CPU")
    }
    assert paper == {
        (80, "mean latency"): "low",
        (80, "CPU"): None,
        (200, "mean latency"): 1.0,
        (200, "CPU"): "near 200",
        (1000, "mean latency"): None,
        (1000, "CPU"): None,
        (3000, "mean latency"): None,
        (3000, "CPU"): None,
    }


def test_a_machine_that_does_not_tell_its_cpu_has_no_line_of_it() -> None:
    found = told([(held(200, 1.0), outcome(cpu_percent=None))], "")
    (cpu,) = (one for one in found.pictures if "CPU" in one.title)
    assert cpu.lines[0].y == ()


def test_distributions_are_those_of_200_queries() -> None:
    runs = [(held(120, 1.0), outcome(120)), (held(200, 1.0), outcome())]
    pictures = [one for one in told(runs, "").pictures if "figure 7" in one.title]
    assert len(pictures) == 3
    assert all(len(one.lines) == 1 for one in pictures)
    assert pictures[0].lines[0].y[-1] == pytest.approx(0.999)


@pytest.mark.parametrize(
    "extra, message",
    [
        ({"queries": "33"}, "no run of this figure has 33 queries"),
        ({"queries": "many"}, "write them as"),
        ({"row-time": "fast"}, "not a duration"),
        ({"series": "none.csv"}, "there is no file"),
    ],
)
def test_wrong_options_are_refused_before_anything_starts(extra, message: str) -> None:
    with pytest.raises(AskedWrongly, match=message):
        figure_6(Asked(extra=extra))
