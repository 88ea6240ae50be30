"""What is on the screen, and what is in a log."""

import dataclasses
import io
import re

import pytest
from rich.console import Console

from tests.helpers.synthetic_surge import NOTE, REASONS, START_S, record, surge
from tidegate.control.bottleneck import Bottleneck
from tidegate.control.control_failure import ControlFailure
from tidegate.control.decision import hold
from tidegate.control.measurement import Measurement, OperatorMeasurement
from tidegate.control.record import Record
from tidegate.view.live.sparkline import BARS, sparkline
from tidegate.view.live.terminal import DECISIONS, LiveView

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(records: list[Record], title: str = "ads", width: int = 110) -> str:
    """The last picture alone, without colours."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=width, height=60, _environ={})
    with LiveView(console, 2.0, title) as view:
        for one in records:
            file.truncate(file.seek(0))
            view.show(one)
        shown = file.getvalue()
    return CODES.sub("", shown)


def in_log(records: list[Record], **options: str) -> list[str]:
    file = io.StringIO()
    with LiveView(Console(file=file, width=40, _environ={}), 2.0, "ads", **options) as view:
        for one in records:
            view.show(one)
    assert "\x1b" not in file.getvalue()
    return file.getvalue().splitlines()


def test_a_terminal_shows_every_figure() -> None:
    shown = on_terminal(surge(23))
    for part in (
        "ads",
        "2,000 rows/s arrive, 1,800 are done",
        "▃▃▃▃▃▃▃▃█████",
        "mean 1.22 s, 95 % within 1.95 s, target 2 s: on time",
        "4 granted, 3.0 busy",
        "900 rows",
        "23 s, policy latency",
        "no change: 1.22 s is within 2 s",
        f"note: {NOTE}",
        "held back: the maximum is 4",
    ):
        assert part in shown, part
    assert re.search(r"per_ad +4 +1,000 +0\.0 +\+10 % +3\.0 MiB", shown)
    assert re.search(r"parse +4 +1,000 +0\.5 +\+0 % +-", shown)
    flat = re.sub(r"[\s│]+", " ", shown)
    assert all(REASONS[tick] in flat for tick in (10, 14, 20))
    assert REASONS[35] not in flat


FAILURE = ControlFailure(START_S, 4, "OSError: no answer", keeps_all=True)


def test_a_log_says_that_control_fails() -> None:
    file = io.StringIO()
    with LiveView(Console(file=file, width=40, _environ={}), 2.0, "ads") as view:
        view.show(surge(1)[0])
        view.show_failure(FAILURE)
    said = file.getvalue().splitlines()
    assert len(said) == 2
    assert said[1].startswith("CONTROL FAILS | control has failed since ")
    assert said[1].endswith("for 4 ticks (OSError: no answer); no row is shed meanwhile")


def test_a_terminal_says_that_control_fails_above_the_last_picture_until_it_works() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=110, height=60, _environ={})
    with LiveView(console, 2.0, "ads") as view:
        view.show_failure(FAILURE)
        view.show(surge(23)[-1])
        file.truncate(file.seek(0))
        view.show_failure(FAILURE)
        shown = CODES.sub("", file.getvalue())
        assert "for 4 ticks (OSError: no answer)" in shown
        assert "900 rows" in shown
        file.truncate(file.seek(0))
        view.show(surge(23)[-1])
        assert "OSError" not in file.getvalue()


def test_lateness_is_said_in_words_and_not_by_colour_alone() -> None:
    assert "target 2 s: LATE" in on_terminal(surge(11))
    assert "900 rows, more than is done in time" in on_terminal(surge(11))


def test_a_tick_without_a_batch_keeps_the_last_latency_and_says_stale() -> None:
    shown = on_terminal(surge(13))
    assert "mean 3 s" in shown
    assert "no batch ended for 1 s" in shown
    first = dataclasses.replace(
        record(0), measurement=dataclasses.replace(record(0).measurement, latency=None)
    )
    assert "no batch has ended yet" in on_terminal([first])


def test_only_the_last_decisions_are_kept_and_a_held_wish_only_once() -> None:
    many = [
        dataclasses.replace(record(10), decision=dataclasses.replace(record(10).decision, cores=n))
        for n in range(101, 110)
    ]
    shown = on_terminal(many, width=160)
    assert [n for n in range(101, 110) if f"cores 2 to {n}" in shown] == list(range(105, 110))
    assert DECISIONS == 5
    assert on_terminal([record(20)] * 4).count("cores 4 to 8") == 1


def test_names_are_no_markup() -> None:
    assert "a [bold]title[/]" in on_terminal(surge(1), title="a [bold]title[/]")


def test_many_operators_and_none_fit() -> None:
    operators = tuple(
        OperatorMeasurement(name=f"op{n}", arrival_rate=1.0, service_rate=1.0, tasks=1 + n)
        for n in range(50)
    )
    wide = dataclasses.replace(
        record(0), measurement=dataclasses.replace(record(0).measurement, operators=operators)
    )
    shown = on_terminal([wide])
    assert "op49" in shown and "op10 " not in shown
    assert "and 38 more" in shown
    assert "operator" not in on_terminal([bare()])


def bare() -> Record:
    """All that a simulated cluster knows."""
    measurement = Measurement(
        at_s=START_S + 60,
        interval_s=60.0,
        arrival_rate=10.0,
        processed_rate=10.0,
        backlog_rows=0.0,
        cores_asked=1,
        cores_granted=1,
        saturated=False,
    )
    return Record(
        tick=0,
        policy="mst",
        target_s=None,
        measurement=measurement,
        decision=hold("enough"),
        acted=False,
    )


def test_a_log_gets_one_plain_line_a_tick() -> None:
    lines = in_log(surge())
    assert len(lines) == 40
    assert lines[0] == (
        "    1 s | 500 rows/s | latency mean 1 s, 95 % within 1.6 s | target 2 s | "
        "2 cores, 1.5 busy | tasks parse 2, per_ad 2 | 50 rows waiting"
    )
    assert "LATE, target 2 s" in lines[9]
    assert "the fullest task has 60 % more than the mean" in lines[9]
    assert lines[10].endswith(f"tasks of parse 2 to 4 (done): {REASONS[10]}")
    assert "2 cores of 4 asked for" in lines[11]
    assert "latency - " in lines[12] and "old numbers: no batch ended for 1 s" in lines[12]
    assert lines[14].endswith(f"| note: {NOTE}")
    assert "(held back: the maximum is 4)" in lines[20]


def test_a_log_does_not_repeat_itself() -> None:
    lines = in_log([record(20), record(20), record(14), record(14)])
    assert ["held back" in line for line in lines] == [True, False, False, False]
    assert ["note:" in line for line in lines] == [False, False, True, False]


def test_the_percentile_can_be_what_is_judged() -> None:
    assert "LATE" not in in_log(surge()[30:31])[0]
    assert "LATE" in in_log(surge()[30:31], statistic="p95")[0]


def test_a_record_with_the_least_is_shown() -> None:
    file = io.StringIO()
    LiveView(Console(file=file, _environ={}), None, "x").show(bare())
    assert file.getvalue() == "   60 s | 10 rows/s | latency - | 1 cores | 0 rows waiting\n"


LIMIT = Bottleneck(
    operator="per_ad", segment="main", tasks=4, load=0.89, gain=0.28, capacity_rate=2200.0
)


def test_the_limit_is_said_in_a_sentence() -> None:
    limited = dataclasses.replace(record(9), bottleneck=LIMIT)
    said = "per_ad limits: rows come at 89 % of what its 4 tasks can process; one more task would"
    assert f"{said} raise that by 28 %" in re.sub(r"[\s│]+", " ", on_terminal([limited]))
    first = dataclasses.replace(LIMIT, load=0.5, tasks=1)
    (line,) = in_log([dataclasses.replace(record(9), bottleneck=first)])
    assert "per_ad would be the first limit: rows come at 50 % of what its 1 task can" in line


@pytest.mark.parametrize("width", [80, 60])
def test_nothing_is_cut_on_a_narrow_terminal(width: int) -> None:
    records = [dataclasses.replace(one, bottleneck=LIMIT) for one in surge(36)]
    shown = on_terminal(records, width=width)
    assert "…" not in shown
    lines = [line.rstrip("\r") for line in shown.splitlines()]
    assert max(map(len, lines)) <= width
    words = re.sub(r"[\s│]+", " ", shown)
    for part in (
        "500 rows/s arrive, 600 are done",
        "mean 1.35 s, 95 % within 2.16 s, target 2 s: on time",
        "4 granted, 3.0 busy",
        "50 rows",
        "one more task would raise that by 28 %",
        "36 s, policy latency",
        REASONS[35],
    ):
        assert part in words, part
    headings = {"operator", "tasks", "rows/s", "busy", "cores", "fullest", "task", "state"}
    assert headings <= set(words.split())


def test_the_length_of_the_run_is_said_where_it_is_known() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=80, height=60, _environ={})
    with LiveView(console, 2.0, "ads", seconds=90.0) as view:
        view.show(record(0))
    assert "1 of 90 s, policy latency" in CODES.sub("", file.getvalue())


@pytest.mark.parametrize(
    ("values", "bars"),
    [
        ([], ""),
        ([0.0, 0.0], BARS[0] * 2),
        ([0.0, 3.5, 7.0], BARS[0] + BARS[4] + BARS[7]),
    ],
)
def test_sparkline(values: list[float], bars: str) -> None:
    assert sparkline(values) == bars


def test_sparkline_keeps_to_its_top_and_to_plain_letters() -> None:
    assert sparkline([5.0], top=1.0) == BARS[7]
    assert sparkline([1.0, 2.0], plain=True).isascii()
