"""A sink that fails: retried as often as it may be, then reported in one sentence."""

import json
import logging
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

import tidegate as tg
from tests.helpers.places import ROOT
from tidegate.errors import AskedWrongly
from tidegate.pipelines.graph import Sink
from tidegate.spark.batch.failure import failure_of, one_line
from tidegate.spark.batch.sinks import SinkFailed, write_sink
from tidegate.spark.owner.epochs import Fenced
from tidegate.spark.sinks.attempt import Attempt

SEVENTH = Attempt("shop", "store", "a1b2c3d4-0000-4000-8000-000000000000", 7)


class Flaky:
    """A sink that fails some times before it works."""

    def __init__(self, failures: int, error: BaseException | None = None) -> None:
        self.failures, self.error = failures, error or ValueError("no room")
        self.calls: list[tuple[object, int]] = []

    def __call__(self, frame: object, batch_id: int) -> None:
        self.calls.append((frame, batch_id))
        if len(self.calls) <= self.failures:
            raise self.error


def sink(write, retries: int = 0) -> Sink:
    return Sink(name="store", inputs=("x",), schema=None, write=write, retries=retries)


def test_one_sentence_names_sink_batch_error_and_line():
    with pytest.raises(SinkFailed) as caught:
        write_sink(sink(Flaky(1)), "frame", SEVENTH)
    said = str(caught.value)
    assert said.startswith("sink 'store' failed in batch 7: ValueError: no room (")
    assert f"({__file__}, line " in said and "raise self.error" in said
    assert said.endswith("); the batch repeats at the next start")
    assert "\n" not in said
    assert failure_of("main", caught.value, RuntimeError("31 lines")) == (said, caught.value)


def test_a_retry_gets_the_same_frame_and_batch_after_a_growing_wait(caplog):
    flaky, waited = Flaky(3), []
    with caplog.at_level(logging.WARNING, logger="tidegate"):
        write_sink(sink(flaky, 3), "frame", SEVENTH, sleep=waited.append)
    assert flaky.calls == [("frame", 7)] * 4
    assert sum(waited) == pytest.approx(1 + 2 + 4)
    lines = [record.getMessage() for record in caplog.records]
    assert [line.rpartition("; ")[2] for line in lines] == [
        "retry 1 of 3 follows in 1 s",
        "retry 2 of 3 follows in 2 s",
        "retry 3 of 3 follows in 4 s",
    ]
    assert lines[0].startswith("pipeline 'shop': sink 'store' failed in batch 7: ValueError")
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_the_wait_is_at_most_half_a_minute_and_the_last_failure_counts():
    flaky, waited = Flaky(9), []
    with pytest.raises(SinkFailed, match=r"no room .*\(tried 8 times\); the batch repeats"):
        write_sink(sink(flaky, 7), "frame", SEVENTH, sleep=waited.append)
    assert len(flaky.calls) == 8
    assert sum(waited) == pytest.approx(1 + 2 + 4 + 8 + 16 + 30 + 30)


def test_a_run_that_stops_retries_nothing():
    flaky, waited = Flaky(9), []
    with pytest.raises(SinkFailed, match="no room"):
        write_sink(
            sink(flaky, 5),
            "frame",
            SEVENTH,
            stopping=lambda: len(waited) >= 3,
            sleep=waited.append,
        )
    assert len(waited) == 3 and len(flaky.calls) == 1


def test_an_operator_that_fails_while_the_sink_reads_is_not_the_sinks_failure():
    text = f"Spark says tidegate-failure:{json.dumps({'message': 'operator x raised'})}:end"
    flaky = Flaky(9, RuntimeError(text))
    with pytest.raises(RuntimeError):
        write_sink(sink(flaky, 5), "frame", SEVENTH)
    assert len(flaky.calls) == 1


def test_a_sink_that_exits_fails_like_any_other():
    with pytest.raises(SinkFailed, match="SystemExit: 3"):
        write_sink(sink(lambda frame, batch_id: sys.exit(3)), "frame", SEVENTH)


def test_errors_of_java_are_cut_to_what_was_said_and_what_caused_it():
    class Java:
        def __init__(self, message, cause=None):
            self.getMessage, self.getCause = (lambda: message), (lambda: cause)

    class Py4JJavaError(Exception):
        java_exception = Java(
            "Job aborted.\nDriver stacktrace:\n\tat x", Java("b", Java("disk full\n\tat y"))
        )

    assert one_line(Py4JJavaError("40 lines")) == (
        "Py4JJavaError: Job aborted. (caused by disk full)"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Job aborted due to stage failure: Task 0 in stage 2.0 failed 1 times, most recent"
            " failure: Lost task 0.0 in stage 2.0 (TID 2) (localhost executor driver):"
            " java.io.IOException: Mkdirs failed\n\tat x",
            "java.io.IOException: Mkdirs failed",
        ),
        (
            "\n  An exception was thrown from the worker.\nTraceback (most recent call last):"
            '\n  File "x.py", line 3\n    f()\n    ^^^\nKeyError: \'v\'\n\tat org.apache\n',
            "KeyError: 'v'",
        ),
        ("[STREAM_FAILED] Query [id = 1] terminated with exception: gone SQLSTATE: X\nmore",
         "gone SQLSTATE: X"),
        ("", "no message"),
    ],
)  # fmt: skip
def test_what_spark_puts_around_an_error_is_left_out(text, said):
    assert one_line(RuntimeError(text)) == f"RuntimeError: {said}"


def test_an_error_whose_java_is_gone_says_what_it_can():
    class Captured(Exception):
        _origin = SimpleNamespace()

    assert one_line(Captured("\n[PATH] no such path\n\tat x")) == "Captured: [PATH] no such path"


def test_a_line_in_the_standard_library_is_not_the_users():
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")
    assert str(ROOT) in one_line(caught.value) and "json.loads" in one_line(caught.value)


@pytest.mark.parametrize("retries", [-1, 1.5, True, "3"])
def test_retries_are_a_whole_number(retries):
    stream = tg.Stream.__new__(tg.Stream)
    with pytest.raises(AskedWrongly, match="retries="):
        stream.to(print, retries=retries)


def test_a_driver_that_lost_its_checkpoint_between_two_tries_calls_no_sink():
    flaky, lost = Flaky(3), iter([None, None, Fenced("another driver has it")])

    def check() -> None:
        error = next(lost)
        if error is not None:
            raise error

    with pytest.raises(Fenced, match="another driver has it"):
        write_sink(sink(flaky, 3), "frame", replace(SEVENTH, check=check), sleep=lambda s: None)
    assert len(flaky.calls) == 2


class Format:
    """A format that fails once, and notes what it was told."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.again: list[bool] = []

    def write(self, frame: object, attempt: Attempt) -> None:
        self.again.append(attempt.again)
        if len(self.again) == 1:
            raise self.error


def test_a_retry_of_a_format_knows_that_something_may_be_written():
    into = Format(OSError("no route"))
    write_sink(sink(None, 1), "frame", SEVENTH, into, sleep=lambda s: None)
    assert into.again == [False, True]


def test_a_format_that_finds_itself_fenced_is_not_tried_again():
    into = Format(Fenced("another driver has it"))
    with pytest.raises(Fenced):
        write_sink(sink(None, 3), "frame", SEVENTH, into, sleep=lambda s: None)
    assert into.again == [False]
