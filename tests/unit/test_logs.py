"""The loggers, and what is logged of decisions."""

import io
import logging
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.helpers.places import SOURCE
from tests.helpers.synthetic_surge import surge
from tidegate.control.decision import Decision, hold
from tidegate.logs import PipelineLogger, log_to_stderr, reason
from tidegate.spark.loop.decision_log import DecisionLog


def test_a_line_begins_with_the_pipeline(caplog: pytest.LogCaptureFixture) -> None:
    PipelineLogger("loop", "100% ads").warning("%d of %s", 3, "five")
    (line,) = caplog.records
    assert line.getMessage() == "100% ads: 3 of five"
    assert (line.name, line.pipeline) == ("tidegate.loop", "100% ads")


def test_a_reason_is_one_line() -> None:
    assert reason(ValueError("first\nsecond")) == "ValueError: first"
    assert reason(KeyError()) == "KeyError"


def test_without_any_set_up_a_program_sees_errors_and_no_decisions() -> None:
    program = (
        "import tidegate, logging; log = logging.getLogger('tidegate.loop'); "
        "log.error('lost'); log.info('decided')"
    )
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, env=env)
    assert (done.stdout, done.stderr) == (b"", b"lost\n")


def test_verbose_prints_to_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    logger, told = logging.getLogger("tidegate"), io.StringIO()
    monkeypatch.setattr(logger, "handlers", list(logger.handlers))
    monkeypatch.setattr(logger, "level", logger.level)
    monkeypatch.setattr("sys.stderr", told)
    log_to_stderr()
    PipelineLogger("loop", "ads").info("cores 1 to 2")
    assert told.getvalue().endswith("INFO tidegate.loop: ads: cores 1 to 2\n")


def test_every_change_is_one_line_and_a_hold_is_none(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tidegate")
    log = DecisionLog(PipelineLogger("loop", "ads"))
    tick = surge()[0]
    asked = tick.measurement.cores_asked
    grow = Decision(reason="a surge", cores=asked + 2, tasks={"count": 3}, keep=0.5)
    log.write(replace(tick, decision=hold("all is well"), acted=False))
    log.write(replace(tick, decision=grow, acted=True))
    for waited_s in (1, 2):  # the reason has another number at every tick
        log.write(replace(tick, decision=grow, acted=False, held_back=f"{waited_s} s since"))
    log.write(replace(tick, decision=replace(grow, keep=0.4), acted=False, held_back="3 s since"))
    log.write(replace(tick, decision=replace(hold("ok"), notes=("late",)), acted=False))
    log.write(replace(tick, decision=replace(hold("ok"), notes=("late",)), acted=False))
    said = [one.getMessage() for one in caplog.records]
    assert len(said) == 4, said
    assert said[0].startswith(f"ads: cores {asked} to {asked + 2}, tasks of count ")
    assert said[0].endswith(" to 3, keep 50.0% of the rows: a surge")
    assert "(not done: 1 s since)" in said[1] and "keep 40.0%" in said[2]
    assert said[3] == "ads: note: late"
