"""What was learned is kept with the checkpoint, and a file that cannot be used costs nothing."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.pipeline_worlds import measured
from tidegate.control.bounds import Bounds
from tidegate.control.constraints import Constraints
from tidegate.control.controller import Controller
from tidegate.control.decision import Decision, hold
from tidegate.control.measurement import Measurement
from tidegate.control.record import Record
from tidegate.logs import PipelineLogger
from tidegate.spark.loop.kept_learning import FILE, KEEP_EVERY_S, KeptLearning
from tidegate.spark.state.files import Durable

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


def test_a_file_of_another_version_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"version": 99}')
    policy = Counting()
    controller, kept = loop(tmp_path, policy)
    kept.recall(START_S)
    assert controller.tick(measured(0)).recalled is None


def test_a_place_that_cannot_be_written_is_logged_once(tmp_path: Path, caplog) -> None:
    policy = Counting()
    controller, kept = loop(tmp_path / "gone", policy)
    with caplog.at_level(logging.WARNING, "tidegate"):
        for tick in range(40):
            controller.tick(measured(tick))
            kept.tick(START_S + tick)
    assert caplog.text.count("keeping what was learned failed") == 1
