"""Figures 7 to 10 from made-up outcomes."""

from tests.unit.papers.flink_er.made_up import outcome
from tidegate.papers.flink_er.breaks import Break
from tidegate.papers.flink_er.comparison import aims, told
from tidegate.papers.flink_er.experiments import LEARNING, WORDCOUNT
from tidegate.papers.flink_er.setting import MINUTES

STATIC = outcome("static", rows_per_s=300.0, latency_s=20.0)
SHORT = (Break(1.0, 2.5, 2.0), Break(2.0, 2.2, 2.0))
FLOW = outcome("flow", rows_per_s=480.0, latency_s=4.0, breaks=SHORT)
LATENCY = outcome("latency", rows_per_s=470.0, latency_s=3.0, breaks=SHORT)


def test_a_good_run_meets_all_aims() -> None:
    assert all(aim.met for aim in aims([STATIC, FLOW, LATENCY], []))


def test_what_is_missed_is_told() -> None:
    slow = outcome("flow", rows_per_s=400.0, latency_s=9.0, breaks=(Break(1.0, 5.0, 2.0),))
    missed = [aim.name for aim in aims([STATIC, slow], ["wrong"]) if not aim.met]
    assert missed == [
        "throughput at the peak, flow over static",
        "latency at the peak, flow",
        "longest break at a rescale, flow",
        "runs with wrong answers",
    ]


def test_without_a_rescale_the_break_was_not_measured() -> None:
    still = outcome("flow", rows_per_s=480.0, latency_s=4.0)
    missed = [aim for aim in aims([STATIC, still], []) if not aim.met]
    assert [(aim.name, aim.value) for aim in missed] == [("longest break at a rescale, flow", None)]


def test_ours_is_beside_the_papers() -> None:
    found = told(WORDCOUNT, [STATIC, FLOW, LATENCY], [], 5.0)
    rows = {row.name: (row.paper, row.ours) for row in found.compared}
    assert rows["static: latency there; the highest of a minute, s"] == (
        "grows, above 0.9 s",
        "20.0; 20.0",
    )
    assert rows["flow: longest break at a rescale, s"] == ("about 3", 0.5)
    assert rows["flow: minute of each change"] == ("5 to 8", "6.0: 10 cores (count 10)")
    gain = rows["flow: throughput at the peak over static; the highest within 8 s"]
    assert gain[0] == "not printed; 1.67 at most" and str(gain[1]).startswith("1.60; ")
    assert rows["latency: longest break at a rescale, s"] == (None, 0.5)
    assert "static: longest break at a rescale, s" not in rows
    assert not found.wrong and found.about_answers


def test_every_strategy_is_drawn_with_all_its_minutes() -> None:
    found = told(LEARNING, [STATIC, FLOW], [], 5.0)
    assert [line.name for line in found.pictures[0].lines] == ["static", "flow"]
    assert {len(line.x) for one in found.pictures for line in one.lines} == {MINUTES}
    assert "2,048 examples" in " ".join(found.notes)


def test_where_there_is_no_proc_nothing_is_told_of_memory() -> None:
    bare = outcome("static", rows_per_s=300.0, latency_s=20.0, usage=False)
    names = [row.name for row in told(WORDCOUNT, [bare, FLOW], [], 5.0).compared]
    assert not any(name.startswith("static: share") for name in names)


def test_wrong_answers_make_the_whole_run_wrong() -> None:
    found = told(WORDCOUNT, [STATIC, FLOW], ["wordcount: a word is missing"], 5.0)
    assert found.wrong and found.notes[-1] == "wordcount: a word is missing"
