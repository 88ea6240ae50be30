"""Executors that are clearly slower or faster than the others are told from chance."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from tests.unit.control.flow.test_bottleneck import operator, tick
from tidegate.control.executors.unlike_notes import UnlikeNotes
from tidegate.control.learning.executor_speeds import (
    ExecutorSpeeds,
    executor_words,
    times_words,
)

PLACES = ("a:/work/app/0", "a:/work/app/1", "b:/work/app/2", "b:/work/app/3")


def seen(speeds: ExecutorSpeeds, rates: Sequence[float], places: Sequence[str] = PLACES) -> None:
    one = operator(
        "count", 0.001, tasks=len(rates), task_rates=tuple(rates), executors=tuple(places)
    )
    speeds.observe(tick(one))


def test_a_slow_executor_is_known_after_some_ticks_and_forgotten_when_it_recovers() -> None:
    speeds = ExecutorSpeeds()
    for _ in range(3):
        seen(speeds, (100.0, 100.0, 100.0, 25.0))
        assert not speeds.unlike, "not yet"
    seen(speeds, (100.0, 100.0, 100.0, 25.0))
    assert speeds.unlike == {PLACES[3]: pytest.approx(0.25)}
    assert speeds.of(PLACES) == (1.0, 1.0, 1.0, pytest.approx(0.25))
    for _ in range(12):
        seen(speeds, (100.0, 100.0, 100.0, 25.5))
    assert speeds.unlike[PLACES[3]] == pytest.approx(0.25), "it stays as it is for little"
    for _ in range(20):
        seen(speeds, (100.0, 100.0, 100.0, 100.0))
    assert not speeds.unlike


def test_chance_and_cold_workers_make_nobody_slow() -> None:
    random = np.random.default_rng(1)
    speeds = ExecutorSpeeds()
    for number in range(500):
        rates = 100.0 * np.exp(random.normal(0.0, 0.25, 4))
        if number == 0:
            rates[3] /= 20.0  # its first batch: code is loaded
        seen(speeds, rates.tolist())
        assert not speeds.unlike


def test_a_small_difference_needs_more_ticks_and_a_long_batch_fewer() -> None:
    slightly, long = ExecutorSpeeds(), ExecutorSpeeds()
    one = operator(
        "count", 0.001, tasks=2, busy_s=10.0, task_rates=(100.0, 60.0), executors=("a", "b")
    )
    for _ in range(6):
        seen(slightly, (100.0, 60.0), ("a", "b"))
        assert not slightly.unlike
    seen(slightly, (100.0, 60.0), ("a", "b"))
    assert slightly.unlike == {"b": pytest.approx(0.6)}
    for _ in range(3):
        long.observe(tick(one))
    assert long.unlike == {"b": pytest.approx(0.6)}


def test_a_fast_executor_is_known_too_and_of_two_the_faster_is_usual() -> None:
    speeds = ExecutorSpeeds()
    for _ in range(8):
        seen(speeds, (100.0, 100.0, 100.0, 300.0))
    assert speeds.unlike == {PLACES[3]: pytest.approx(3.0)}
    pair = ExecutorSpeeds()
    for _ in range(8):
        seen(pair, (50.0, 100.0), PLACES[:2])
    assert pair.unlike == {PLACES[0]: pytest.approx(0.5)}


def test_an_executor_without_rows_gets_another_chance() -> None:
    speeds = ExecutorSpeeds()
    for _ in range(8):
        seen(speeds, (100.0, 100.0, 100.0, 10.0))
    for _ in range(61):
        assert speeds.unlike
        seen(speeds, (100.0, 100.0, 100.0, 0.0))
    assert not speeds.unlike


def test_what_has_no_places_or_rows_teaches_nothing() -> None:
    speeds = ExecutorSpeeds()
    for _ in range(10):
        seen(speeds, (100.0, 10.0), ())
        seen(speeds, (100.0, 10.0), ("a", "a"))
        rest = operator(
            "count", 0.001, rows=0, tasks=2, task_rates=(1.0, 9.0), executors=("a", "b")
        )
        speeds.observe(tick(rest))
    assert not speeds.unlike


def test_the_slow_executor_is_named() -> None:
    speeds = ExecutorSpeeds()
    notes = UnlikeNotes(speeds)
    one = operator(
        "count", 0.001, tasks=4, task_rates=(100.0, 100.0, 100.0, 10.0), executors=PLACES
    )
    said: tuple[str, ...] = ()
    for _ in range(8):
        speeds.observe(tick(one))
        said = notes.notes(tick(one))
    assert said == (
        "executor 3 on b is about 10 times as slow as the others: its tasks get fewer shards, and"
        " fewer rows of maps with tasks of their own",
    )
    gone = operator("count", 0.001, tasks=2, executors=PLACES[:2])
    assert notes.notes(tick(gone)) == (), "it has no tasks any more"


def test_words() -> None:
    assert executor_words("host-b:/var/spark/work/app-1/17") == "executor 17 on host-b"
    assert executor_words("node 3") == "node 3"
    assert times_words(0.4) == "about 2.5 times as slow as the others"
    assert times_words(2.0) == "about 2 times as fast as the others"
    assert times_words(math.exp(-3.0)) == "about 20 times as slow as the others"
