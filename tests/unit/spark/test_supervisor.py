"""A run's supervisor with imitated queries and segments: one clean end, whoever asks for it."""

import logging
import threading
from types import SimpleNamespace

import pytest

from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.batch.segment import SegmentRun, Stopping
from tidegate.spark.batch.step import Step, Steps
from tidegate.spark.owner.epochs import Fenced
from tidegate.spark.run import Run


class Query:
    """Imitates a streaming query of Spark's."""

    def __init__(self) -> None:
        self.isActive, self.stops = True, 0
        self.lastProgress = None
        self.error: Exception | None = None

    def exception(self) -> Exception | None:
        return self.error

    def stop(self) -> None:
        self.stops += 1
        self.isActive = False

    def processAllAvailable(self) -> None:  # noqa: N802
        pass

    def fail(self, error: Exception) -> None:
        self.error = error
        self.isActive = False


def segment(name: str) -> SimpleNamespace:
    return SimpleNamespace(
        segment=SimpleNamespace(name=name),
        failure=None,
        stopping=False,
        busy=threading.Lock(),
        results=[],
        steps=None,
        anchors=SimpleNamespace(release=lambda: None),
        allocation={"op": None},
        runs_here=False,
    )


@pytest.fixture
def parts(monkeypatch):
    """A run of two segments, its segments and its queries."""
    monkeypatch.setattr("tidegate.spark.run._spark_is_up", lambda: True)
    segments = {name: segment(name) for name in ("a", "b")}
    run = Run(SimpleNamespace(name="shop"), segments)
    queries = {name: Query() for name in segments}
    for name, query in queries.items():
        run._begin(name, query)
    run._watch()
    yield run, segments, queries
    run._supervisor.heard = True
    run.stop()


def test_a_failed_query_ends_the_other_one_and_is_logged_once(parts, caplog):
    run, segments, queries = parts
    segments["b"].failure = ValueError("full\nand more")
    queries["b"].fail(RuntimeError("wrapped"))
    with pytest.raises(TidegateError, match="'shop' failed: segment 'b' failed: ValueError: full;"):
        run.awaitTermination(30)
    assert queries["a"].stops == 1
    assert [(r.name, r.levelno) for r in caplog.records] == [("tidegate", logging.ERROR)]
    for call in (lambda: run.rescale("op", 2), lambda: run.reroute("op", {0: 1}), run.shed):
        with pytest.raises(TidegateError, match="'shop' failed"):
            call()
    with pytest.raises(TidegateError, match="'shop' failed"):
        run.processAllAvailable()
    run.stop()  # the failure has been raised before


def test_stop_cleans_up_before_it_raises_a_failure_that_nobody_has_heard_of(parts):
    run, segments, queries = parts
    segments["a"].failure = ValueError("full")
    queries["a"].fail(RuntimeError("wrapped"))
    with pytest.raises(TidegateError, match="ValueError: full"):
        run.stop()
    assert queries["b"].stops == 1
    run.stop()


def test_what_only_the_control_loop_has_heard_is_still_raised_by_stop(parts):
    run, segments, queries = parts

    run.loop = loop = SimpleNamespace(
        failure=None, stop=lambda: None, leave=lambda: None, ticks_here=True
    )
    segments["a"].failure = ValueError("full")
    queries["a"].fail(RuntimeError("wrapped"))
    assert run._supervisor.wait(30)
    with pytest.raises(TidegateError, match="full"):
        run.rescale("op", 2)
    loop.ticks_here = False
    with pytest.raises(TidegateError, match="full"):
        run.stop()


def test_a_batch_that_is_told_to_stop_is_no_failure(parts):
    run, segments, queries = parts
    segments["b"].failure = Stopping("segment 'b' stops before batch 1")
    queries["b"].error = RuntimeError("wraps Stopping")
    run.stop()
    assert run.failure is None and run.awaitTermination()


def test_a_failure_in_the_last_batch_is_found(parts):
    run, segments, queries = parts

    def stop() -> None:
        segments["b"].failure = ValueError("the last one")
        queries["b"].fail(RuntimeError("wrapped"))

    queries["b"].stop = stop
    with pytest.raises(TidegateError, match="the last one"):
        run.stop()


def test_a_job_goes_on_behind_its_sources_and_ends_when_it_is_done(parts, caplog):
    run, _segments, queries = parts
    asked = threading.Event()
    done = threading.Event()

    def is_done(ended) -> bool:
        assert ended == ["a"]
        asked.set()
        return done.is_set()

    run._supervisor.job = SimpleNamespace(broken=lambda ended: "b" in ended, done=is_done)
    with caplog.at_level(logging.INFO, logger="tidegate"):
        queries["a"].isActive = False
        assert asked.wait(30)
        assert run.isActive and queries["b"].stops == 0
        done.set()
        assert run.awaitTermination(30)
    assert queries["b"].stops == 1 and run.failure is None and not run.isActive
    assert "has processed all that its sources had" in caplog.text
    assert "from outside" not in caplog.text


def test_a_job_ends_with_the_failure_of_a_source(parts):
    run, segments, queries = parts
    run._supervisor.job = SimpleNamespace(broken=lambda ended: False, done=lambda ended: False)
    segments["a"].failure = ValueError("full")
    queries["a"].fail(RuntimeError("wrapped"))
    with pytest.raises(TidegateError, match="full"):
        run.awaitTermination(30)
    assert queries["b"].stops == 1


def test_a_job_whose_reader_is_stopped_from_outside_ends(parts, caplog):
    run, _segments, queries = parts
    run._supervisor.job = SimpleNamespace(
        broken=lambda ended: "b" in ended, done=lambda ended: False
    )
    queries["b"].isActive = False
    assert run.awaitTermination(30)
    assert queries["a"].stops == 1
    assert "from outside" in caplog.text


def test_all_threads_that_stop_or_wait_return_after_one_stop(parts):
    run, _, queries = parts
    returned: list[object] = []
    calls = [run.stop, run.stop, run.awaitTermination, run.awaitTermination]
    threads = [threading.Thread(target=lambda c=call: returned.append(c())) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(map(str, returned)) == ["None", "None", "True", "True"]
    assert [query.stops for query in queries.values()] == [1, 1]


def test_a_stop_that_takes_too_long_says_what_hangs(parts):
    run, segments, queries = parts
    steps = Steps(7, None)
    steps.reached(Step.PLANNED)
    segments["a"].steps = steps
    with segments["a"].busy:
        with pytest.raises(TidegateError) as caught:
            run.stop(timeout=0.05)
        said = str(caught.value)
        assert "has not stopped within 0.05 s: segment 'a' is in the step after 'planned'" in said
        assert "of batch 7, which began 0 s ago" in said and "stop(timeout=...) again" in said
        assert not run.awaitTermination(0.01)
    run.stop()
    assert [query.stops for query in queries.values()] == [1, 1]


def test_a_hang_between_two_batches_and_in_the_loop_is_told_apart(parts):
    run, segments, _ = parts
    ticking = threading.Event()
    run.loop = SimpleNamespace(
        failure=None, stop=lambda: ticking.wait(30), leave=lambda: None, ticks_here=False
    )
    with segments["b"].busy:
        with pytest.raises(TidegateError, match="the control loop has not finished its last tick"):
            run.stop(timeout=0.05)
        ticking.set()
        with pytest.raises(TidegateError, match="segment 'b' is held between two batches"):
            run.stop(timeout=0.5)
    run.stop()


@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_a_timeout_must_be_seconds(parts, timeout):
    run, _, queries = parts
    with pytest.raises(AskedWrongly, match="give seconds"):
        run.stop(timeout=timeout)
    assert queries["a"].isActive


def test_a_query_that_was_stopped_from_outside_ends_the_run_without_a_failure(parts, caplog):
    run, _, queries = parts
    queries["b"].isActive = False
    assert run.awaitTermination(30)
    assert queries["a"].stops == 1 and run.failure is None
    assert "a query of pipeline 'shop' was stopped from outside" in caplog.text


def test_errors_after_spark_was_stopped_are_no_failure(parts, monkeypatch, caplog):
    run, segments, queries = parts
    monkeypatch.setattr(run._supervisor, "_spark_is_up", lambda: False)
    segments["b"].failure = ValueError("Job aborted because SparkContext was shut down")
    queries["b"].isActive = False
    assert run.awaitTermination(30)
    assert run.failure is None and "Spark was stopped while pipeline 'shop' ran" in caplog.text


def test_a_java_process_that_died_is_a_failure(parts):
    run, _, queries = parts

    class Dead(Query):
        @property
        def isActive(self) -> bool:  # noqa: N802
            raise ConnectionRefusedError("nobody listens")

        @isActive.setter
        def isActive(self, active: bool) -> None:  # noqa: N802
            pass

    run._begin("a", Dead())
    with pytest.raises(TidegateError, match=r"Spark does not answer any more .*nobody listens"):
        run.awaitTermination(30)
    assert queries["b"].stops == 1


def test_a_run_that_lost_its_checkpoint_fails_without_waiting_for_its_batch(parts):
    run, segments, queries = parts
    released: list[None] = []
    run._release = lambda: released.append(None)
    segments["a"].busy.acquire()
    queries["a"].stop = segments["a"].busy.release  # Spark interrupts the batch
    run.lost(Fenced("another driver has the checkpoint"))
    with pytest.raises(TidegateError, match="'shop' failed: another driver has the checkpoint"):
        run.awaitTermination(30)
    assert all(one.stopping for one in segments.values())
    assert queries["b"].stops >= 1 and len(released) == 1


def test_a_sink_that_stops_its_own_run_does_not_wait_for_itself(parts):
    run, segments, _ = parts

    with segments["a"].busy:
        segments["a"].runs_here = True
        run.stop(timeout=None)
    assert run._supervisor.wait(30)


def test_a_run_that_never_began_can_be_stopped():
    run = Run(SimpleNamespace(name="shop"), {"a": segment("a")})
    run.stop()
    assert run.awaitTermination()


def test_py4j_does_not_repeat_errors_of_a_batch(caplog):
    logger = logging.getLogger("py4j.clientserver")
    broken = SimpleNamespace(_wait=lambda batch_id: 1 / 0)
    for call in (lambda: SegmentRun.__call__(broken, None, 3), lambda: 1 / 0):
        try:
            call()
        except ZeroDivisionError:
            logger.exception("an exception in the proxy")
    assert len(caplog.records) == 1
