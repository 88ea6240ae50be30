"""What figure 8 makes of runs that begin with a right and with wrong splits."""

import pytest

from tests.helpers.pipeline_worlds import measured
from tests.unit.papers.drs.simulated_runs import VLD, WRONG, Split, simulated_run
from tidegate.apps.run_application import ApplicationRun
from tidegate.control.decision import hold
from tidegate.control.record import Record
from tidegate.models.queueing.stations import Queues
from tidegate.papers.drs.rebalancing import BETWEEN_MINUTES, MINUTES, told
from tidegate.papers.figure import Findings
from tidegate.papers.measured import queues_of

MINUTE_S = 3.0
RIGHT_SPLIT: Split = (10, 11, 1)
CHANGE_S = round(BETWEEN_MINUTES * MINUTE_S)


def records(begins: int, rate: float, seconds: int = 40) -> list[Record]:
    """A run with so many rows per second."""
    return [
        Record(
            tick=tick,
            policy="drs-fixed",
            target_s=60.0,
            measurement=measured(begins + tick, cores=4, rate=rate),
            decision=hold(""),
            acted=False,
        )
        for tick in range(seconds)
    ]


def queues(*runs: list[Record]) -> Queues:
    (operator,) = (one.name for one in runs[0][0].measurement.operators)
    return queues_of(runs, (operator,), "mmk")


def test_the_time_between_two_runs_is_no_time_without_load() -> None:
    one = queues(records(0, 100.0))
    both = queues(records(0, 100.0), records(5000, 100.0))
    assert list(both.load) == pytest.approx(list(one.load))


def run_from(start: Split, *changes: Split) -> ApplicationRun:
    """A run that changes its split at minute 14, and once more at its end."""
    at_s = (CHANGE_S, round(MINUTES * MINUTE_S) - 2)
    return simulated_run(
        start,
        seconds=MINUTES * MINUTE_S,
        changes=dict(zip(at_s, changes, strict=False)),
    )


def missed(found: Findings) -> list[str]:
    return [aim.name for aim in found.aims if not aim.met]


def test_wrong_starts_that_are_mended_meet_every_aim() -> None:
    starts = {
        RIGHT_SPLIT: run_from(RIGHT_SPLIT),
        (8, 12, 2): run_from((8, 12, 2), RIGHT_SPLIT),
    }
    found = told(VLD, starts, MINUTE_S)
    assert missed(found) == []
    rows = {one.name: one for one in found.compared}
    assert rows["vld: best split of the rates that were measured"].ours == "10:11:1"
    change = rows["vld from 8:12:2: minute and split of each change"]
    assert (change.paper, change.ours) == ("14: 10:11:1", "0.0: 8:12:2, 14.0: 10:11:1")
    cost = rows["vld from 8:12:2: ms more in the minute of a change"]
    assert cost.paper == "negligible" and str(cost.ours).startswith("14.0: ")
    assert rows["vld from 10:11:1: ms more in the minute of a change"].ours == "none"


def test_a_wrong_start_that_stays_misses_its_aims() -> None:
    starts = {RIGHT_SPLIT: run_from(RIGHT_SPLIT), (8, 12, 2): run_from((8, 12, 2))}
    assert missed(told(VLD, starts, MINUTE_S)) == [
        "vld from 8:12:2: cores in the wrong place at the end",
        "vld from 8:12:2: re-allocations",
        "vld from 8:12:2: sojourn after over that of the right start",
    ]


def test_a_right_start_may_stay_and_must_not_be_spoilt() -> None:
    spoilt = {RIGHT_SPLIT: run_from(RIGHT_SPLIT, (7, 13, 2))}
    assert missed(told(VLD, spoilt, MINUTE_S)) == [
        "vld from 10:11:1: cores in the wrong place at the end"
    ]


def test_wrong_answers_of_a_start_are_told() -> None:
    found = told(VLD, {RIGHT_SPLIT: simulated_run(RIGHT_SPLIT, verdict=WRONG)}, MINUTE_S)
    assert missed(found) == ["vld: wrong answers"]
    assert found.wrong and found.notes == ("vld: a frame is missing",)
