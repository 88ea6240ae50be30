"""Capacities follow the latencies of their segments, and only where the target is missed."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.pipeline_worlds import measured
from tidegate.control.flow.feedback import SegmentFeedback
from tidegate.control.measurement import Latency, Measurement

NAMES = ("first", "second", "third")
TARGET_S = 3.0


def latency(mean_s: float) -> Latency:
    return Latency(mean_s=mean_s, p50_s=mean_s, p95_s=mean_s, p99_s=mean_s)


def tick(*latencies_s: float | None, total_s: float | None = None) -> Measurement:
    """Segments in a row with these latencies."""
    base = measured(1)
    segments = tuple(
        dataclasses.replace(
            base.segments[0], name=name, latency=None if one is None else latency(one)
        )
        for name, one in zip(NAMES, latencies_s, strict=False)
    )
    if total_s is None:
        total_s = sum(one or 0.0 for one in latencies_s)
    return dataclasses.replace(base, segments=segments, latency=latency(total_s))


def corrected(
    *latencies_s: float | None, load: float = 0.5, times: int = 8, total_s: float | None = None
) -> list[float]:
    feedback = SegmentFeedback(TARGET_S)
    names = NAMES[: len(latencies_s)]
    for _ in range(times):
        feedback.correct(
            tick(*latencies_s, total_s=total_s),
            names,
            [1000.0] * len(names),
            np.full(len(names), load),
        )
    return feedback.usable(names).tolist()


def test_only_the_segment_that_takes_too_long_loses_capacity() -> None:
    slow, quick, other = corrected(3.0, 0.4, 0.4)
    assert slow < 1.0 and quick == other == 1.0


def test_nothing_is_lost_on_target() -> None:
    assert corrected(1.0, 1.0, 0.9) == [1.0, 1.0, 1.0]
    assert corrected(2.5, 0.2, 0.2) == [1.0, 1.0, 1.0], "one may take what the others leave"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.05, 6.0), min_size=1, max_size=3))
def test_a_segment_loses_exactly_while_the_pipeline_is_late(latencies_s: list[float]) -> None:
    usable = corrected(*latencies_s, times=1)
    late = sum(latencies_s) > TARGET_S * (1 + 1e-9)
    if abs(sum(latencies_s) - TARGET_S) > 1e-6:
        assert (min(usable) < 1.0) == late
    assert all(0.3 <= one <= 1.0 for one in usable)


def test_where_segments_tell_nothing_the_pipelines_latency_counts() -> None:
    usable = corrected(None, None, total_s=4.0)
    assert usable[0] == usable[1] < 1.0
    assert corrected(None, total_s=4.0) == pytest.approx(usable[:1])
    some = corrected(4.0, None, total_s=4.0)
    assert some[0] < 1.0 and some[1] == 1.0, "no row of the second came out"


def test_a_share_is_not_below_the_load_and_comes_back() -> None:
    assert corrected(9.0, load=0.8, times=50) == pytest.approx([0.8])
    feedback = SegmentFeedback(TARGET_S)
    for latency_s, ticks in ((9.0, 10), (0.5, 10)):
        for _ in range(ticks):
            feedback.correct(tick(latency_s), NAMES[:1], [1000.0], np.array([0.5]))
        low = feedback.usable(NAMES[:1])[0]
        assert low < 1.0
    for _ in range(100):
        feedback.correct(tick(0.5), NAMES[:1], [1000.0], np.array([0.5]))
    assert feedback.usable(NAMES[:1]).tolist() == [1.0]


def test_a_segment_that_drains_a_backlog_is_left_alone() -> None:
    feedback = SegmentFeedback(TARGET_S)
    late = tick(9.0, 0.1)
    feedback.correct(late, NAMES[:2], [1e3, 1e3], np.array([0.5, 0.5]), resting=NAMES[:1])
    feedback.correct(late, NAMES[:2], [1e3, 0.0], np.array([0.0, 0.5]))
    silent = dataclasses.replace(late, latency=None)
    feedback.correct(silent, NAMES[:2], [1e3, 1e3], np.array([0.5, 0.5]))
    assert feedback.usable(NAMES[:2]).tolist() == [1.0, 1.0]
