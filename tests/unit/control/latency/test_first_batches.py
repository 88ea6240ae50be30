"""Decisions before the model is known: start-up is no reason for more cores, rows are."""

import dataclasses

import pytest

from tests.helpers.deciding import Deciding, latency_policy
from tests.helpers.pipeline_worlds import measured
from tidegate.control.batch_parts import OWN_PLAN, SLOWEST, STAGES
from tidegate.control.bounds import Bounds
from tidegate.control.latency.options import LatencyOptions
from tidegate.control.learning.outliers import COLD, FIRST
from tidegate.control.measurement import Measurement

TARGET_S = 2.0


def policy(most: int = 12) -> Deciding:
    return latency_policy(TARGET_S, Bounds(1, most), LatencyOptions(catch_up_s=5.0))


def first(
    *,
    took_s: float = 11.0,
    rows_s: float = 0.3,
    rows: int = 200,
    rate: float = 50.0,
    cores: int = 2,
    backlog: float | None = None,
    told: bool = True,
    outlier: str | None = FIRST,
) -> Measurement:
    """The tick in which a first batch ended, with the rows that arrived while it ran."""
    one = measured(
        11,
        rate=rate,
        cores=cores,
        duration_s=took_s,
        rows=rows,
        latency_s=took_s,
        backlog=rate * took_s if backlog is None else backlog,
    )
    parts_s = {OWN_PLAN: 4.0, STAGES: took_s - rows_s - 4.0, SLOWEST: rows_s} if told else {}
    segment = dataclasses.replace(
        one.segments[0],
        batches=tuple(
            dataclasses.replace(batch, outlier=outlier, parts_s=parts_s)
            for batch in one.segments[0].batches
        ),
    )
    return dataclasses.replace(one, segments=(segment,))


def test_start_up_is_no_reason_for_more_cores() -> None:
    decision = policy().decide(first())
    assert decision.holds
    assert decision.reason == (
        "the first batch took 11 s, of which 10.7 s were start-up: its rows need 300 ms;"
        " 2 cores are kept"
    )


def test_neither_is_a_first_batch_without_rows() -> None:
    decision = policy().decide(first(rows=0, rows_s=0.0, cores=1))
    assert decision.holds
    assert decision.reason.endswith("it had no rows; 1 core is kept")


def test_a_handful_of_rows_in_cold_functions_is_not_costly() -> None:
    """Five rows took 200 ms, because the function loaded something when it was first called."""
    assert policy().decide(first(rows=5, rows_s=0.2)).holds


def test_rows_that_need_long_on_warm_workers_are_a_reason() -> None:
    """2 ms a row and core: 4,000 rows/s are eight cores' work, and 44,000 rows wait."""
    decision = policy().decide(first(rows=2000, rows_s=2.0, rate=4000.0))
    assert decision.cores == 11, "as many as the overrun calls for, and no more"
    assert decision.tasks == {"work": 11}
    assert "44,000 rows wait now" in decision.reason


def test_only_as_many_cores_as_the_rows_call_for() -> None:
    """600 rows/s at 2 ms are little more than a core's work; its backlog takes two or three."""
    decision = policy(60).decide(first(took_s=31.0, rows=2000, rows_s=2.0, rate=600.0))
    assert decision.cores is not None and 3 <= decision.cores < 16
    by_overrun = policy(60).decide(
        first(took_s=31.0, rows=2000, rows_s=2.0, rate=600.0, told=False)
    )
    assert by_overrun.cores == 31


def test_many_rows_that_wait_count_although_the_first_batch_had_none() -> None:
    decision = policy().decide(first(rows=0, rows_s=0.0, rate=4000.0))
    assert decision.cores is not None and decision.cores >= 8


def test_rows_that_have_shown_that_they_are_cheap_do_not_count_as_costly() -> None:
    """100,000 rows took 200 ms, so 44,000 take less."""
    assert policy().decide(first(rows=100_000, rows_s=0.2, rate=4000.0)).holds


def test_without_a_known_load_the_next_batch_is_taken_to_be_like_this_one() -> None:
    light = first(rate=0.0, rows_s=0.5, backlog=0.0)
    heavy = first(rate=0.0, rows_s=6.0, backlog=0.0)
    assert policy().decide(light).holds
    decision = policy().decide(heavy)
    assert decision.cores is not None and decision.cores > 6
    assert "wait now" not in decision.reason


def test_a_batch_that_does_not_tell_of_its_tasks_counts_as_a_whole() -> None:
    decision = policy().decide(first(told=False))
    assert decision.cores == 11
    assert decision.reason.startswith("a first batch took 11 s, target 2 s: 11 cores")


def test_a_backlog_of_a_cheap_load_is_no_reason_to_go_beyond_what_drains_it() -> None:
    """5,500 rows wait at 1 ms each: two cores drain them within five seconds."""
    assert policy().decide(first(rows=1000, rows_s=0.5, rate=500.0)).holds


def test_other_segments_keep_their_tasks() -> None:
    """Two of three segments have not ended a batch: the first one's start-up is not theirs."""
    one = first(cores=1)
    others = tuple(
        dataclasses.replace(one.segments[0], name=name, batches=(), backlog_rows=0.0)
        for name in ("second", "third")
    )
    assert policy().decide(dataclasses.replace(one, segments=(*one.segments, *others))).holds


def cold(tick: int, took_s: float, rows: int, rows_s: float, rate: float) -> Measurement:
    """A tick of an attached query whose second batch ended while executors still warmed up."""
    one = first(took_s=took_s, rows=rows, rate=rate, told=False, outlier=COLD)
    segment = dataclasses.replace(
        one.segments[0],
        batches=tuple(
            dataclasses.replace(batch, batch_id=tick, busy_s=2 * (rows_s + 3.0), rowless_s=6.0)
            for batch in one.segments[0].batches
        ),
    )
    return dataclasses.replace(one, at_s=one.at_s + tick, segments=(segment,), operators=())


@pytest.mark.parametrize(("rows_s", "rate", "grows"), [(0.3, 50.0, False), (4.0, 4000.0, True)])
def test_a_model_of_cold_batches_alone_is_bounded_by_their_tasks(
    rows_s: float, rate: float, grows: bool
) -> None:
    """It takes start-up for a cost that all batches have."""
    deciding = policy()
    decision = deciding.decide(cold(1, 8.0, 500, rows_s, rate))
    assert "main.w_s" in deciding.beliefs, "the model is known"
    if grows:
        assert decision.cores is not None and decision.cores > 2
    else:
        assert decision.holds
        assert decision.reason.startswith("one of the first batches took 8 s")
