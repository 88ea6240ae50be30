"""What figure 9 makes of the course of a run: changes, cores, sojourns, and who has which aim."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.helpers.pipeline_worlds import measured
from tidegate.apps.application import Verdict
from tidegate.apps.catalogue import application
from tidegate.apps.run_application import ApplicationRun
from tidegate.benching import Aim
from tidegate.control.decision import hold
from tidegate.control.record import Record
from tidegate.papers.drs.rates import LONG, SHORT, T_MAX_S, RatedPolicy, of_policy, told
from tidegate.papers.drs.timeline import Timeline
from tidegate.papers.figure import Compared

OPERATORS = application("vld").operators
DRS = RatedPolicy("drs, w 6", "drs(w=24)", 24.0, ("12: more", "none"), "12: more than 3000")
OURS = RatedPolicy("tidegate", "latency")
MINUTE_S = 2.0
SMALL, LARGER, LARGEST = (3, 5, 1), (4, 6, 1), (8, 11, 2)


def course(
    minutes: int,
    split: Callable[[float], tuple[int, ...]],
    latency_s: Callable[[float], float],
) -> Timeline:
    """A run with a tick a second; `split` and `latency_s` tell of a minute."""
    records = []
    for tick in range(round(minutes * MINUTE_S)):
        minute = tick / MINUTE_S
        plain = measured(tick, latency_s=latency_s(minute))
        operators = tuple(
            replace(plain.operators[0], name=name, tasks=tasks)
            for name, tasks in zip(OPERATORS, split(minute), strict=True)
        )
        records.append(
            Record(
                tick=tick,
                policy="drs",
                target_s=T_MAX_S,
                measurement=replace(plain, operators=operators),
                decision=hold(""),
                acted=False,
            )
        )
    return Timeline(records, OPERATORS, MINUTE_S)


def followed(minute: float) -> tuple[int, ...]:
    """The split of a policy that follows the rates of the long part at once."""
    if minute < 6.0 or 21.0 <= minute < 34.0:
        return SMALL
    return LARGER if minute < 34.0 else LARGEST


def values(compared: list[Compared]) -> dict[str, Compared]:
    return {one.name.partition(": ")[2].partition(" ")[0]: one for one in compared}


def named(aims: list[Aim]) -> dict[str, bool]:
    return {one.name.partition(": ")[2]: one.met for one in aims}


def test_cores_that_follow_the_rates_meet_every_aim() -> None:
    line = course(LONG.minutes, followed, lambda minute: 2.0)
    compared, aims = of_policy(LONG, OURS, line)
    rows = values(compared)
    assert rows["minute"].ours == "0.0: 3:5:1, 6.0: 4:6:1, 21.0: 3:5:1, 34.0: 8:11:2"
    assert rows["cores"].ours == "[9, 11, 9, 21]"
    assert rows["seconds"].ours == "[0.0, 0.0, 0.0, 0.0]"
    assert named(aims) == {
        "cores added at 12": True,
        "cores given back at 6": True,
        "cores added at 18": True,
        "T_max is held again within": True,
    }


def test_cores_that_stay_miss_every_aim_about_cores() -> None:
    line = course(LONG.minutes, lambda minute: SMALL, lambda minute: 2.0)
    _, aims = of_policy(LONG, OURS, line)
    assert list(named(aims).values()) == [False, False, False, True]


@pytest.mark.parametrize(("late_minutes", "met"), [(9.0, True), (11.0, False), (100.0, False)])
def test_the_target_is_to_hold_again_within_twenty_seconds(late_minutes: float, met: bool) -> None:
    def late_s(minute: float) -> float:
        return 2.0 * T_MAX_S if 6.0 <= minute < 6.0 + late_minutes else 2.0

    compared, aims = of_policy(LONG, OURS, course(LONG.minutes, followed, late_s))
    assert named(aims)["T_max is held again within"] is met
    assert ("None" in str(values(compared)["seconds"].ours)) is (late_minutes == 100.0)


def test_drs_has_no_aim_about_the_time_and_the_papers_words_beside_it() -> None:
    late = course(LONG.minutes, followed, lambda minute: 2.0 * T_MAX_S)
    compared, aims = of_policy(LONG, DRS, late)
    assert "T_max is held again within" not in named(aims)
    rows = values(compared)
    assert rows["minute"].paper == "12: more"
    more = next(one for one in compared if "more in the minute" in one.name)
    assert more.paper == "12: more than 3000"
    assert more.ours == "6.0: +0, 21.0: +0, 34.0: +0 (usually 0)"


def test_the_short_part_has_no_aim_about_cores() -> None:
    line = course(SHORT.minutes, lambda minute: SMALL, lambda minute: 2.0)
    compared, aims = of_policy(SHORT, DRS, line)
    assert aims == []
    assert values(compared)["minute"].paper == "none"
    assert next(one for one in compared if "more in the minute" in one.name).paper is None
    assert list(named(of_policy(SHORT, OURS, line)[1])) == ["T_max is held again within"]


def test_what_is_changed_after_the_last_row_is_left_out() -> None:
    end = SHORT.minutes
    line = course(end + 5, lambda at: LARGER if at > end + 1 else SMALL, lambda minute: 2.0)
    ran = ApplicationRun(
        name="vld",
        seconds=end * MINUTE_S,
        records=list(line.records),
        arrived=0,
        verdict=Verdict(correct=True, said="all frames are right"),
    )
    outcome = told(SHORT, [(OURS, ran)], MINUTE_S)
    assert values(list(outcome.compared))["minute"].ours == "0.0: 3:5:1"
    (curve,) = outcome.pictures[0].lines
    assert max(at for at in curve.x if isinstance(at, float)) <= end
