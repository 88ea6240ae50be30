"""A batch that was late because workers started is told from one that had too many rows."""

import dataclasses

import pytest

from tests.helpers.pipeline_worlds import measured
from tidegate.control.batch_parts import (
    COMMIT,
    LOG,
    OWN_PLAN,
    PLANNING,
    SLOWEST,
    STAGES,
    STARTING,
)
from tidegate.control.learning.cold_batches import (
    StartUpLateness,
    cold_batch,
    warm_duration_s,
)
from tidegate.control.learning.outliers import COLD, FIRST, NEW_EXECUTORS, NEW_TASKS
from tidegate.control.measurement import BatchMeasurement, Measurement

TARGET_S = 2.0
START_UP = {PLANNING: 0.6, OWN_PLAN: 5.0, STAGES: 3.0, STARTING: 1.0}
PARTS = {**START_UP, LOG: 0.4, COMMIT: 0.2, SLOWEST: 0.8}
"""What a first batch of 11 s may be made of."""


def batch(outlier: str | None = FIRST, **changes: object) -> BatchMeasurement:
    told = BatchMeasurement(
        batch_id=0,
        rows=100,
        tasks=2,
        imbalance=1.0,
        duration_s=11.0,
        ended_s=1_700_000_011.0,
        outlier=outlier,
        parts_s=PARTS,
    )
    return dataclasses.replace(told, **changes)


def tick(number: int, *batches: BatchMeasurement) -> Measurement:
    one = measured(number)
    segment = dataclasses.replace(one.segments[0], batches=batches)
    return dataclasses.replace(one, segments=(segment,))


def test_the_parts_of_a_batch_tell_what_its_rows_need() -> None:
    cold = cold_batch(batch())
    assert cold is not None
    assert cold.start_up_s == pytest.approx(9.6)
    assert cold.warm_s == pytest.approx(1.4)
    assert cold.work_s == pytest.approx(2 * 0.8 / 100)
    assert cold.words == (
        "the first batch took 11 s, of which 9.6 s were start-up: its rows need 800 ms"
    )


@pytest.mark.parametrize("outlier", [FIRST, COLD, NEW_TASKS, NEW_EXECUTORS])
def test_first_batches_and_those_on_new_workers_may_be_cold(outlier: str) -> None:
    cold = cold_batch(batch(outlier))
    assert cold is not None and cold.start_up_s == pytest.approx(9.6)


def test_a_warm_batch_is_as_long_as_it_was() -> None:
    assert cold_batch(batch(None)) is None
    assert cold_batch(batch("3 times as long as such batches take")) is None
    assert warm_duration_s(batch(None)) == 11.0
    assert warm_duration_s(batch()) == pytest.approx(1.4)


def test_queries_of_others_tell_the_time_of_all_their_tasks() -> None:
    """Two cores share eight core seconds, of which half are for no row."""
    cold = cold_batch(batch(parts_s={}, busy_s=8.0, rowless_s=4.0))
    assert cold is not None
    assert cold.rows_s == pytest.approx(2.0)
    assert cold.start_up_s == pytest.approx(9.0)


def test_without_a_word_of_tasks_nothing_is_known() -> None:
    assert cold_batch(batch(parts_s={})) is None


def test_a_batch_without_rows_says_so() -> None:
    cold = cold_batch(batch(rows=0, parts_s={**PARTS, SLOWEST: 0.0}))
    assert cold is not None and cold.work_s == 0.0
    assert cold.words.endswith("were start-up: it had no rows")


def test_a_batch_whose_clocks_disagree_has_no_negative_part() -> None:
    cold = cold_batch(batch(duration_s=0.5))
    assert cold is not None
    assert cold.rows_s == 0.5 and cold.start_up_s == 0.0 == cold.warm_s - 0.5


def late_at(lateness: StartUpLateness, ticks: dict[int, list[BatchMeasurement]]) -> list[int]:
    """The ticks whose latency is that of rows that waited for a cold batch."""
    return [n for n in range(40) if lateness.notice(tick(n, *ticks.get(n, []))) is not None]


def ended(number: int, duration_s: float, outlier: str | None = None) -> BatchMeasurement:
    return batch(
        outlier,
        batch_id=number,
        duration_s=duration_s,
        ended_s=1_700_000_000.0 + number,
        parts_s={SLOWEST: 0.5, STAGES: duration_s - 0.5},
    )


def test_the_rows_that_waited_for_a_cold_batch_are_late_for_a_while() -> None:
    """The batch after it ends at 13, and its rows are in the latency of the next five seconds."""
    late = late_at(StartUpLateness(TARGET_S), {11: [ended(11, 11.0, FIRST)], 13: [ended(13, 1.0)]})
    assert late == list(range(11, 19))


def test_a_next_batch_that_is_as_long_again_is_an_overload() -> None:
    late = late_at(StartUpLateness(TARGET_S), {11: [ended(11, 11.0, FIRST)], 20: [ended(20, 11.5)]})
    assert late == list(range(11, 20))


def test_a_next_batch_that_does_not_end_is_an_overload() -> None:
    late = late_at(StartUpLateness(TARGET_S), {11: [ended(11, 11.0, FIRST)]})
    assert late == list(range(11, 23)), "after another 11 s it is not start-up any more"


def test_rows_that_need_long_are_not_start_up() -> None:
    heavy = batch(parts_s={**START_UP, SLOWEST: 9.0}, duration_s=18.6)
    assert late_at(StartUpLateness(TARGET_S), {11: [heavy]}) == []


def test_a_cold_batch_within_the_target_is_not_late() -> None:
    assert late_at(StartUpLateness(12.0), {11: [ended(11, 11.0, FIRST)]}) == []
