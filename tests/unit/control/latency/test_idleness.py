"""When a pipeline is idle for so long that it needs only its minimum of cores, and when not."""

from dataclasses import replace

import pytest

from tests.helpers.deciding import Deciding, latency_policy
from tests.helpers.pipeline_worlds import controller, measured
from tidegate.control.bounds import Bounds
from tidegate.control.decision import Decision
from tidegate.control.lag import Lag, PartitionLag
from tidegate.control.latency.idleness import LEAST_WAIT_S, Idleness
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.measurement import BatchMeasurement, Measurement
from tidegate.control.record import Record

WAIT = round(LEAST_WAIT_S)


def tick(at: int, *, idle: bool = True, rows: int = 0, **changes: object) -> Measurement:
    """A tick without a batch, or with one of so many rows."""
    plain = measured(at, rate=float(rows), backlog=0.0, latency_s=None, batches=rows > 0, rows=rows)
    segment = replace(plain.segments[0], idle=idle, **changes)
    return replace(plain, segments=(segment,))


def lasting(ticks: list[Measurement], after_s: float = 10.0) -> list[float | None]:
    idleness = Idleness()
    found = []
    for one in ticks:
        idleness.observe(one)
        found.append(idleness.lasting_s(one, after_s))
    return found


def decided(policy: Deciding, ticks: list[Measurement], cores: int = 3) -> list[Decision]:
    """The decisions, each of which is acted on at once."""
    found = []
    for one in ticks:
        decision = policy.decide(replace(one, cores_asked=cores, cores_granted=cores))
        cores = cores if decision.cores is None else decision.cores
        found.append(decision)
    return found


def test_an_idle_time_counts_once_it_has_lasted() -> None:
    found = lasting([tick(at) for at in range(WAIT + 3)])
    assert found[:WAIT] == [None] * WAIT
    assert found[WAIT:] == [WAIT, WAIT + 1, WAIT + 2]


@pytest.mark.parametrize("wait_s", [45.0, 120.0])
def test_it_waits_longer_where_cores_take_long_to_come_back(wait_s: float) -> None:
    found = lasting([tick(at) for at in range(round(wait_s) + 1)], wait_s)
    assert found[-2:] == [None, wait_s]


def test_a_query_with_a_long_trigger_has_looked_several_times() -> None:
    found = lasting([tick(at, trigger_s=20.0) for at in range(61)])
    assert found[59:] == [None, 60.0]


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": 5},
        {"backlog_rows": 1.0, "idle": False},
        {"backlog_rows": 1.0},
        {"lag": Lag(partitions=(PartitionLag(topic="t", partition=0, behind_rows=7),))},
    ],
)
def test_a_row_ends_it(changes: dict[str, object]) -> None:
    found = lasting(
        [tick(at) for at in range(WAIT + 2)]
        + [tick(WAIT + 2, **changes)]
        + [tick(at) for at in range(WAIT + 3, 2 * WAIT)]
    )
    assert found[WAIT + 1] is not None
    assert found[WAIT + 2 :] == [None] * len(found[WAIT + 2 :])


def test_a_moment_in_which_it_asks_its_sources_does_not_end_it() -> None:
    found = lasting([tick(at, idle=at % 4 == 0) for at in range(WAIT + 6)])
    assert found[WAIT + 2] == WAIT + 2, "the first tick from then on at which it is seen idle"


def test_a_source_that_does_not_answer_is_not_idle() -> None:
    found = lasting([tick(at, idle=at < WAIT - 5) for at in range(3 * WAIT)])
    assert found == [None] * len(found)


def test_nor_is_one_whose_first_batch_runs() -> None:
    """It began with a backlog that nobody knows of: no batch of it has ended yet."""
    found = lasting([tick(at, idle=False) for at in range(3 * WAIT)])
    assert found == [None] * len(found)


def test_all_segments_must_be_idle() -> None:
    ticks = [tick(at) for at in range(2 * WAIT)]
    busy = [
        replace(one, segments=(*one.segments, replace(one.segments[0], name="b", idle=False)))
        for one in ticks
    ]
    assert lasting(busy) == [None] * len(busy)


def test_rows_soon_after_a_release_make_the_next_one_wait_twice_as_long() -> None:
    rest = [tick(at) for at in range(WAIT + 1)]
    again = [tick(at) for at in range(WAIT + 2, 3 * WAIT + 3)]
    found = lasting([*rest, tick(WAIT + 1, rows=5), *again])
    assert found[WAIT] == WAIT
    assert found[-2:] == [None, 2 * WAIT]


def test_rows_long_after_a_release_do_not() -> None:
    rest = [tick(at) for at in range(6 * WAIT)]
    again = [tick(at) for at in range(6 * WAIT + 1, 7 * WAIT + 2)]
    assert lasting([*rest, tick(6 * WAIT, rows=5), *again])[-2:] == [None, WAIT]


def test_executors_are_released_before_the_first_row_has_come() -> None:
    found = decided(latency_policy(6.0, Bounds(1, 3)), [tick(at) for at in range(WAIT + 10)])
    changes = [(at, one.cores) for at, one in enumerate(found) if one.cores is not None]
    assert changes == [(WAIT, 1)]
    assert found[WAIT].reason == "no row has come for 30 s: 1 core will do until one does"
    assert found[-1].reason == "no row has come for 39 s: the minimum is enough until one does"
    assert found[WAIT].tasks == {"work": 1}


def test_and_after_the_last_one_even_where_an_empty_batch_would_be_late() -> None:
    """A batch has three core seconds for no row: with rows, one core would miss the target."""
    policy = latency_policy(4.0, Bounds(1, 3))
    busy = []
    for at in range(0, 60, 2):
        one = tick(at, idle=False, rows=100 + at % 7)
        cores = 3 if at < 30 else 2
        batch = replace(
            one.segments[0].batches[0],
            tasks=cores,
            duration_s=0.1 + 3.1 / cores,
            busy_s=3.1,
            rowless_s=3.0,
        )
        busy.append(replace(one, segments=(replace(one.segments[0], batches=(batch,)),)))
    resting = [tick(at) for at in range(60, 60 + 3 * WAIT)]
    found = decided(policy, [replace(one, operators=()) for one in (*busy, *resting)])
    kept = found[len(busy) + WAIT - 1]
    assert kept.holds and "no row has come" not in kept.reason
    changes = [(at - len(busy), one.cores) for at, one in enumerate(found) if not one.holds]
    assert changes[-1] == (WAIT, 1)


def test_the_minimum_and_whole_executors_are_kept() -> None:
    found = decided(latency_policy(6.0, Bounds(2, 3)), [tick(at) for at in range(WAIT + 1)])
    assert found[-1].cores == 2


def test_a_load_that_is_expected_after_a_restart_keeps_the_cores() -> None:
    """The first batch of the run before had ended a second ago: rows must be on their way."""
    before = controller(6.0, bounds=Bounds(1, 3))
    for at in range(20):
        before.tick(tick(at, idle=False, rows=3000))
    after = controller(6.0, bounds=Bounds(1, 3))
    after.recall(before.learned(), measured(21).at_s)
    late = tick(22 + WAIT)
    ticks = [tick(at) for at in range(22, late_at(late) + 1)]
    reasons = [
        after.tick(replace(one, cores_asked=3, cores_granted=3)).decision.reason for one in ticks
    ]
    assert not any("no row has come" in reason for reason in reasons)


def late_at(one: Measurement) -> int:
    return round(one.at_s - measured(0).at_s)


def test_patience_is_remembered() -> None:
    policy = controller(6.0, options=LatencyOptions()).policy
    learned = policy.learned()  # type: ignore[attr-defined]
    assert learned["idleness"] == {"patience": 1.0}


def test_a_record_tells_that_a_segment_is_idle() -> None:
    record = controller().tick(tick(1))
    assert Record.from_json(record.to_json()).measurement.segments[0].idle


def test_a_record_from_before_it_was_told_is_read() -> None:
    line = controller().tick(tick(1)).to_json().replace(',"idle":true', "")
    assert not Record.from_json(line).measurement.segments[0].idle


def test_a_batch_without_rows_is_no_row() -> None:
    empty = BatchMeasurement(
        batch_id=0, rows=0, tasks=1, imbalance=1.0, duration_s=0.4, ended_s=0.0
    )
    found = lasting([tick(at, batches=(empty,)) for at in range(WAIT + 1)])
    assert found[-1] == WAIT
