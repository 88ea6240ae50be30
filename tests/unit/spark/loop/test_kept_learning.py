"""What was learned is kept with the checkpoint, and a file that cannot be used costs nothing."""

import dataclasses
import json
import logging
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.pipeline_worlds import measured
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.controller import Controller
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.logs import PipelineLogger
from tidegate.sim.microbatch.pipeline import PipelineSimulation
from tidegate.sim.microbatch.world import SimulatedSegment, Stage, World
from tidegate.spark.loop.kept_learning import FILE, KEEP_EVERY_S, KeptLearning
from tidegate.spark.state.files import Durable
from tidegate.workload.profile import sine

START_S = 1_700_000_000.0


class Counting:
    """A policy that learns how often it was asked."""

    name = "counting"

    def __init__(self) -> None:
        self.asked = 0
        self.age_s: float | None = None

    def decide(self, measurement: Measurement, constraints: Constraints) -> Decision:
        self.asked += 1
        return hold(f"asked {self.asked} times")

    def learned(self) -> dict[str, Any]:
        return {"asked": self.asked}

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        self.asked = int(learned["asked"])
        self.age_s = age_s


class Other(Counting):
    name = "other"


def loop(place: Path, policy: Counting) -> tuple[Controller, KeptLearning]:
    controller = Controller(policy, bounds=Bounds(1, 4))
    return controller, KeptLearning(Durable(str(place)), controller, PipelineLogger("loop", "shop"))


def run(place: Path, ticks: int) -> Counting:
    policy = Counting()
    controller, kept = loop(place, policy)
    for tick in range(ticks):
        record = controller.tick(measured(tick))
        kept.tick(record.measurement.at_s)
    return policy


def test_a_restart_begins_with_what_was_learned_and_says_so(tmp_path: Path) -> None:
    ticks = int(2 * KEEP_EVERY_S) + 1
    run(tmp_path, ticks)
    policy = Counting()
    controller, kept = loop(tmp_path, policy)
    kept.recall(START_S + ticks + 11.0)
    assert policy.asked == ticks
    assert policy.age_s == pytest.approx(12.0)
    first, second = (controller.tick(measured(ticks + 12 + n)) for n in range(2))
    said = "begins with what a run learned that ended 12 s ago"
    assert said in first.decision.notes and said not in second.decision.notes
    assert first.recalled is not None and second.recalled is None
    again = Record.from_json(first.to_json())
    assert again.recalled == first.recalled


def test_it_is_kept_every_few_seconds_and_at_the_end(tmp_path: Path) -> None:
    policy = Counting()
    controller, kept = loop(tmp_path, policy)
    for tick in range(5):
        controller.tick(measured(tick))
        kept.tick(START_S + tick)
    assert not (tmp_path / FILE).exists()
    kept.close()
    assert json.loads((tmp_path / FILE).read_text())["policy"] == {"asked": 5}


def test_another_policy_does_not_begin_with_what_this_one_learned(tmp_path: Path) -> None:
    run(tmp_path, 30)
    policy = Other()
    _, kept = loop(tmp_path, policy)
    kept.recall(START_S + 40.0)
    assert policy.asked == 0


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[1]", b'{"version": 1}', b'{"version": 1, "at_s": "x"}', b"\xff\xfe"],
)
def test_a_damaged_file_is_logged_and_left(tmp_path: Path, caplog, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    policy = Counting()
    controller, kept = loop(tmp_path, policy)
    with caplog.at_level(logging.WARNING, "tidegate"):
        kept.recall(START_S)
    assert policy.asked == 0
    assert "is learned again" in caplog.text
    assert controller.tick(measured(0)).recalled is None


def test_a_file_of_another_version_is_logged_and_left(tmp_path: Path, caplog) -> None:
    (tmp_path / FILE).write_text('{"version": 99}')
    policy = Counting()
    controller, kept = loop(tmp_path, policy)
    with caplog.at_level(logging.WARNING, "tidegate"):
        kept.recall(START_S)
    assert controller.tick(measured(0)).recalled is None
    assert caplog.text.count("is learned again") == 1
    assert "has version 99, and this release reads 1" in caplog.text


class Half(Counting):
    """A policy that fails after it has begun to recall."""

    def recall(self, learned: Mapping[str, Any], age_s: float) -> None:
        self.asked = 77
        raise ZeroDivisionError("no weight at all")


def test_a_policy_that_was_half_recalled_is_not_used(tmp_path: Path, caplog) -> None:
    run(tmp_path, 30)
    controller, kept = loop(tmp_path, Half())
    with caplog.at_level(logging.INFO, "tidegate"):
        kept.recall(START_S + 40.0)
    assert "no weight at all" in caplog.text and controller.began_with is None
    assert controller.tick(measured(40)).decision.reason == "asked 1 times"


def learned_by_the_default_policy() -> dict[str, Any]:
    """A few minutes of a pipeline of two segments, with cores that take 90 s to be granted."""
    segments = tuple(
        SimulatedSegment(
            name=name, fixed_s=0.3, stages=(Stage(name=f"in {name}", work_s=2e-3),), after=after
        )
        for name, after in (("main", None), ("second", "main"))
    )
    body = PipelineSimulation(
        World(
            segments=segments, profile=sine(900.0, 500.0, 90.0), seconds=300.0, cores=4, grant_s=9.0
        )
    )
    controller = new_controller(ASSEMBLY)
    for second in range(1, 301):
        record = controller.tick(body.advance(float(second)))
        if record.acted:
            body.act(record.decision)
    found: dict[str, Any] = json.loads(json.dumps(controller.learned()))
    return found


ASSEMBLY = Assembly(target=Target(2.0, 95), bounds=Bounds(1, 16))
ODD = (None, "x", "nan", "inf", [], {}, [None], True, math.nan, math.inf)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every part of a document; of long lists the first entries alone."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, one in value.items():
            yield from places(one, (*path, key))
    elif isinstance(value, list):
        for place, one in enumerate(value[:2]):
            yield from places(one, (*path, place))


def damaged(document: dict[str, Any], path: tuple[Any, ...], odd: Any) -> dict[str, Any]:
    found: Any = json.loads(json.dumps(document))
    inside = found
    for key in path[:-1]:
        inside = inside[key]
    if odd is ...:
        del inside[path[-1]]
    else:
        inside[path[-1]] = odd
    return dict(found)


def test_a_document_that_is_damaged_anywhere_never_makes_a_tick_fail(
    tmp_path: Path, caplog
) -> None:
    """One value is taken out, or replaced by an odd one; then the run must still decide.

    Every fifth place is tried, because all of them take half a minute.
    """
    document = learned_by_the_default_policy()
    everywhere = list(places(document))
    assert len(everywhere) > 150
    random, now_s = np.random.default_rng(1), float(document["at_s"]) + 3.0
    for number, path in enumerate(everywhere[::5]):
        odd = (..., *ODD)[int(random.integers(len(ODD) + 1))] if number % 3 else None
        (tmp_path / FILE).write_text(json.dumps(damaged(document, path, odd)))
        controller = new_controller(ASSEMBLY)
        kept = KeptLearning(Durable(str(tmp_path)), controller, PipelineLogger("loop", "shop"))
        caplog.clear()
        with caplog.at_level(logging.WARNING, "tidegate"):
            kept.recall(now_s)
        assert caplog.text.count("is learned again") <= 1
        begin = int(now_s - START_S)
        for tick in range(begin, begin + 4):
            one = dataclasses.replace(measured(tick, rate=900.0, backlog=0.0), grant_s=90.0)
            record = controller.tick(one)
            assert record.decision.reason, (path, odd)
        json.dumps(controller.learned(), allow_nan=False)


def test_a_place_that_cannot_be_written_is_logged_once(tmp_path: Path, caplog) -> None:
    policy = Counting()
    controller, kept = loop(tmp_path / "gone", policy)
    with caplog.at_level(logging.WARNING, "tidegate"):
        for tick in range(40):
            controller.tick(measured(tick))
            kept.tick(START_S + tick)
    assert caplog.text.count("keeping what was learned failed") == 1
