"""A tick that fails does not end control, on a loop whose parts are imitated."""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.helpers.hook_server import hook_server
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.bounds import Bounds
from tidegate.control.control_failure import ControlFailure
from tidegate.control.decision import Decision
from tidegate.control.measurement import Measurement
from tidegate.control.notice import CONTROL_FAILED, SHEDDING, Notice
from tidegate.control.record import Record
from tidegate.control.target import Target
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.recording import RecordWriter, read_records
from tidegate.spark.loop import ticker
from tidegate.spark.loop.assembly import assembly_within
from tidegate.spark.loop.negotiate import LocalBudget
from tidegate.spark.loop.settings import LoopSettings
from tidegate.spark.loop.ticker import FAILURES_TO_KEEP_ALL, LONGEST_PAUSE_S, Ticker
from tidegate.spark.options import StartOptions, filled

PATIENCE_S = 30.0


class Loop(Ticker):
    """A loop that fails as long as `error` is set."""

    alive = True

    def __init__(
        self,
        tick_s: float = 0.001,
        writer: RecordWriter | None = None,
        settings: LoopSettings | None = None,
    ) -> None:
        controller = new_controller(Assembly(target=Target(3.0), bounds=Bounds(1, 4)))
        super().__init__(
            controller, LocalBudget(1), name="shop", tick_s=tick_s, writer=writer, settings=settings
        )
        self.error: BaseException | None = None
        self.sheds = True

    def measure(self, now_s: float) -> Measurement:
        if self.error is not None:
            raise self.error
        return Measurement(
            at_s=now_s,
            interval_s=1.0,
            arrival_rate=0.0,
            processed_rate=0.0,
            backlog_rows=0.0,
            cores_asked=1,
            cores_granted=1,
            saturated=False,
        )

    def act(self, decision: Decision) -> None:
        pass

    def keep_all(self) -> bool:
        self.sheds = False
        return True


class Seen:
    """What a loop tells its watchers; `until` waits for something to become true of it."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.failures: list[ControlFailure] = []
        self._changed = threading.Condition()

    def record(self, record: Record) -> None:
        with self._changed:
            self.records.append(record)
            self._changed.notify_all()

    def failure(self, failure: ControlFailure) -> None:
        with self._changed:
            self.failures.append(failure)
            self._changed.notify_all()

    def until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE_S)


def watched(loop: Loop) -> Seen:
    seen = Seen()
    loop.watchers.append(seen.record)
    loop.failure_watchers.append(seen.failure)
    return seen


def test_control_goes_on_when_it_can(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tidegate")
    loop = Loop()
    seen = watched(loop)
    loop.error = OSError("no route to the master\nand a long trace")
    loop.start()
    try:
        seen.until(lambda: len(seen.failures) >= FAILURES_TO_KEEP_ALL)
        failure = loop.control_failure
        assert failure is not None and failure.ticks >= FAILURES_TO_KEEP_ALL
        assert failure.error == "OSError: no route to the master"
        assert (loop.failure, loop.sheds) == (None, False)
        assert [one.ticks for one in seen.failures[:3]] == [1, 2, 3]
        assert [one.keeps_all for one in seen.failures[:3]] == [False, False, True]
        assert len({one.since_s for one in seen.failures}) == 1
        loop.error = None
        seen.until(lambda: len(seen.records) >= 2)
    finally:
        loop.stop()
    assert loop.control_failure is None
    notes = [note for note in seen.records[0].decision.notes if "control has failed" in note]
    assert len(notes) == 1 and "no row is shed meanwhile; it works again" in notes[0]
    assert not any("control" in note for note in seen.records[1].decision.notes)
    warnings = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert all(one.getMessage().startswith("shop: control has failed") for one in warnings)
    lines = [one for one in warnings if one.name == "tidegate.loop"]
    assert len(lines) == len(seen.failures), "one line for each retry"
    told = [one for one in warnings if one.name == "tidegate.notices"]
    assert len(told) == 1 and len(lines) + len(told) == len(warnings), "and one notice"


def test_pauses_double_up_to_a_bound() -> None:
    loop = Loop(tick_s=1.0)
    pauses_s = [loop._failed(ValueError("x"), 100.0) for _ in range(40)]
    assert pauses_s[:5] == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert set(pauses_s[5:]) == {LONGEST_PAUSE_S}
    slow = Loop(tick_s=60.0)
    assert slow._failed(ValueError("x"), 100.0) == 60.0, "never more often than it ticks"


def test_no_batch_waits_for_a_loop_that_fails() -> None:
    loop = Loop(tick_s=3600.0)
    loop._failed(ValueError("x"), 100.0)
    assert loop.hurry(PATIENCE_S) is False


def test_who_waits_for_a_tick_is_not_kept_by_one_that_fails() -> None:
    loop = Loop(tick_s=3600.0)
    loop.error = ValueError("x")
    loop.start()
    try:
        assert loop.hurry(PATIENCE_S), "the tick is over, though it failed"
        assert loop.control_failure is not None
    finally:
        loop.stop()


def test_a_watcher_that_raises_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tidegate")
    loop = Loop()
    calls: list[int] = []

    def broken(record: Record) -> None:
        calls.append(record.tick)
        if record.tick < 4:
            raise ZeroDivisionError("in a watcher")

    loop.watchers.append(broken)
    seen = watched(loop)
    for second in range(1, 6):
        loop.tick(float(second))
    assert calls == [1, 2, 3, 4, 5] == [record.tick for record in seen.records]
    said = [one.getMessage() for one in caplog.records if "watcher" in one.getMessage()]
    assert len(said) == 2, said
    assert "broken failed and is tried again: ZeroDivisionError: in a watcher" in said[0]
    assert "broken works again after 3 failures" in said[1]
    assert loop.control_failure is None


def test_records_that_cannot_be_written_end_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tidegate")
    place = tmp_path / "records"
    place.write_text("a file where the directory should be")
    loop = Loop(writer=RecordWriter(place))
    loop.tick(1.0)
    loop.tick(2.0)
    place.unlink()
    loop.tick(3.0)
    loop.stop()
    assert [record.tick for record in loop.records] == [1, 2, 3]
    assert (place / "records.jsonl").read_text().count("\n") == 1
    said = [one.getMessage() for one in caplog.records if "writing records" in one.getMessage()]
    assert len(said) == 2 and "works again after 2 failures" in said[1]


def test_a_loop_whose_queries_have_ended_ends_silently(caplog: pytest.LogCaptureFixture) -> None:
    loop = Loop()
    loop.alive = False
    loop.error = TidegateError("the query is gone")
    loop.start()
    loop._thread.join(PATIENCE_S)
    assert not loop._thread.is_alive()
    assert (loop.control_failure, loop.failure, caplog.records) == (None, None, [])


def test_nothing_is_printed_by_the_thread(capfd: pytest.CaptureFixture[str]) -> None:
    loop = Loop()
    seen = watched(loop)
    loop.error = ValueError("told to nobody")
    loop.start()
    seen.until(lambda: len(seen.failures) >= 2)
    loop.error = SystemExit("for good")
    loop._thread.join(PATIENCE_S)
    assert isinstance(loop.failure, SystemExit)
    loop.stop()
    assert capfd.readouterr() == ("", "")


def test_shedding_that_a_failing_tick_begins_again_ends_again() -> None:
    """A tick sheds first and asks for cores last, so it may shed and then fail every time."""
    loop = Loop()
    for number in range(1, FAILURES_TO_KEEP_ALL + 3):
        loop.sheds = True
        loop._failed(OSError("no answer"), float(number))
        assert loop.sheds == (number < FAILURES_TO_KEEP_ALL)


def test_a_watcher_that_hangs_does_not_keep_a_run_from_ending(monkeypatch, caplog) -> None:
    monkeypatch.setattr(ticker, "_LAST_TICK_S", 0.01)
    loop, hangs, go_on = Loop(), threading.Event(), threading.Event()

    def hang(record: Record) -> None:
        hangs.set()
        go_on.wait(PATIENCE_S)

    loop.watchers.append(hang)
    loop.start()
    assert hangs.wait(PATIENCE_S)
    loop.stop()
    go_on.set()
    assert "the last tick of the control loop hangs" in caplog.text


def settings_of(**options: object) -> LoopSettings:
    given = filled(StartOptions, {"target": "3 s", **options})
    return LoopSettings.of(StartOptions, given, lambda given: assembly_within(Bounds(1, 4), given))


def test_settings_change_at_the_next_tick_and_are_recorded(tmp_path: Path) -> None:
    loop = Loop(writer=RecordWriter(tmp_path), settings=settings_of())
    assert loop.tick(100.0).assembly is not None
    loop.change_settings({"target": "7 s"})
    loop.change_settings({"percentile": 95})
    changed, after = loop.tick(101.0), loop.tick(102.0)
    loop.stop()
    assert changed.assembly is not None and after.assembly is None
    assert changed.assembly["target"] == {"latency_s": 7.0, "percentile": 95}
    assert (changed.tick, changed.target_s, after.target_s) == (2, 7.0, 7.0)
    assert "settings changed: target 3 s to 7 s, percentile mean to p95" in changed.decision.notes
    assert not any("settings" in note for note in after.decision.notes)
    assert [one.assembly is not None for one in read_records(tmp_path)] == [True, True, False]


def test_a_wrong_or_an_empty_change_changes_nothing() -> None:
    loop = Loop(settings=settings_of())
    loop.tick(100.0)
    before = loop.controller
    with pytest.raises(AskedWrongly, match="percentile 42"):
        loop.change_settings({"target": "7 s", "percentile": 42})
    loop.change_settings({"target": "3000 ms"})
    assert loop.tick(101.0).target_s == 3.0
    assert loop.controller is before


def test_a_tick_that_fails_does_not_lose_the_change() -> None:
    loop = Loop(settings=settings_of())
    loop.tick(100.0)
    loop.change_settings({"target": "7 s"})
    loop.error = OSError("no answer")
    with pytest.raises(OSError, match="no answer"):
        loop.tick(101.0)
    loop.error = None
    record = loop.tick(102.0)
    assert record.assembly is not None and record.target_s == 7.0
    assert "settings changed: target 3 s to 7 s" in record.decision.notes


def test_the_users_function_is_asked_by_the_loop() -> None:
    asked: list[Decision] = []
    loop = Loop(settings=settings_of(approve=lambda decision, now: bool(asked.append(decision))))
    wish = Decision(reason="told to", cores=3)
    loop.controller.policy = SimpleNamespace(name="wishes", decide=lambda now, limits: wish)
    record = loop.tick(100.0)
    assert [one.cores for one in asked] == [3]
    assert (record.acted, record.held_back) == (False, "refused by approve: it returned False")


class Sheds(Loop):
    """A loop whose pipeline keeps half of its rows from the beginning."""

    def measure(self, now_s: float) -> Measurement:
        return replace(super().measure(now_s), keep=0.5)


def test_a_notice_is_in_the_record_and_reaches_its_receivers(tmp_path: Path) -> None:
    told: list[Notice] = []
    with hook_server() as hook:
        loop = Sheds(
            writer=RecordWriter(tmp_path), settings=settings_of(notify=[hook.url, told.append])
        )
        loop.tick(100.0)
        loop.tick(101.0)
        loop.stop()
        assert [post["text"] for post in hook.posts] == [
            "shop: rows are shed: 50 % are kept at 0 rows/s on 1 core",
            f"shop: {told[1].what}",
        ]
    assert [(one.kind, one.ended) for one in told] == [(SHEDDING, False), (SHEDDING, True)]
    first, second = read_records(tmp_path)
    assert first.notices == (told[0],) and second.notices == ()
    assert told[0].what in first.decision.notes


def test_receivers_change_while_it_runs_and_wrong_ones_do_not() -> None:
    told: list[Notice] = []
    loop = Sheds(settings=settings_of())
    with pytest.raises(AskedWrongly, match="'slack' is neither"):
        loop.change_settings({"notify": "slack"})
    loop.change_settings({"notify": told.append, "notify_after": "1 min"})
    assert loop.tick(100.0).assembly is not None, "the controller goes on as it is"
    loop.stop()
    assert [one.ended for one in told] == [False, True]


def test_a_loop_that_ends_for_good_gives_notice() -> None:
    told: list[Notice] = []
    loop = Loop(settings=settings_of(notify=told.append))
    loop.error = SystemExit("for good")
    loop.start()
    loop._thread.join(PATIENCE_S)
    loop.stop()
    assert [(one.kind, one.ended) for one in told] == [
        (CONTROL_FAILED, False),
        (CONTROL_FAILED, True),
    ]
    assert "SystemExit: for good" in told[0].what


def test_what_began_ends_with_the_queries() -> None:
    told: list[Notice] = []
    loop = Sheds(settings=settings_of(notify=told.append))
    seen = watched(loop)
    loop.start()
    seen.until(lambda: len(seen.records) >= 1)
    loop.alive, loop.error = False, TidegateError("the query is gone")
    loop._thread.join(PATIENCE_S)
    loop.stop()
    assert [one.ended for one in told] == [False, True]


def test_a_mistake_in_finding_notices_fails_no_tick(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(self: object, record: Record) -> tuple[Notice, ...]:
        raise ZeroDivisionError("a mistake")

    monkeypatch.setattr("tidegate.control.notices.detector.NoticeDetector.observe", broken)
    loop = Loop()
    assert [loop.tick(float(second)).tick for second in (1, 2, 3)] == [1, 2, 3]
    assert caplog.text.count("ZeroDivisionError: a mistake") == 1
