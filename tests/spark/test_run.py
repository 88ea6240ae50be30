"""The life of a run on real Spark: stopping, failing, and who is told."""

import logging
import threading
import time

import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.feed import Collected, Feed
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark import start

pytestmark = pytest.mark.spark
DDL = "k string, v long"


def rows(number: int) -> pa.Table:
    return pa.table({"k": ["a", "b"], "v": [number, number]})


def two_segments(feed: Feed, spark, sink):
    """A pipeline whose second segment calls the sink."""
    start = tg.pipeline("two", feed.stream(spark)).map(lambda t: t, name="first")
    start.cut("handover").map(lambda t: t, name="second").to(sink, name="out")
    return start


def test_all_callers_of_stop_and_a_waiting_thread_return_cleanly(spark, tmp_path):
    feed, seen = Feed(tmp_path / "in", DDL), threading.Event()
    for number in range(6):
        feed.add(rows(number))

    def sink(frame, batch_id):
        frame.count()
        seen.set()

    run = two_segments(feed, spark, sink).start(str(tmp_path / "ck"), tasks=1)
    outcomes: list[object] = []

    def note(call):
        try:
            outcomes.append(call())
        except BaseException as error:
            outcomes.append(error)

    waiting = [threading.Thread(target=note, args=(run.awaitTermination,)) for _ in range(2)]
    for thread in waiting:
        thread.start()
    assert seen.wait(60)
    stopping = [threading.Thread(target=note, args=(run.stop,)) for _ in range(3)]
    for thread in stopping:
        thread.start()
    for thread in waiting + stopping:
        thread.join(60)
    assert sorted(map(str, outcomes)) == ["None", "None", "None", "True", "True"]
    assert not any(query.isActive for query in run.queries.values())
    assert run.failure is None
    run.stop()
    assert run.awaitTermination()


def test_a_failed_segment_ends_the_others_though_nobody_waits(spark, tmp_path, caplog):
    feed = Feed(tmp_path / "in", DDL)
    feed.add(rows(0))

    def sink(frame, batch_id):
        raise ValueError("no room in the store")

    with caplog.at_level(logging.ERROR, logger="tidegate"):
        run = two_segments(feed, spark, sink).start(str(tmp_path / "ck"), tasks=1)
        queries = run.queries.values()
        deadline_s = time.monotonic() + 60
        while any(query.isActive for query in queries) and time.monotonic() < deadline_s:
            threading.Event().wait(0.02)
        assert not any(query.isActive for query in queries)
        with pytest.raises(TidegateError, match="no room in the store"):
            run.awaitTermination(60)
    (record,) = caplog.records
    assert "pipeline 'two' failed" in record.getMessage()
    assert "no room in the store" in record.getMessage()
    for act in (lambda: run.rescale("second", 2), lambda: run.shed(0.5), run.processAllAvailable):
        with pytest.raises(TidegateError, match="no room in the store"):
            act()
    run.stop()


def test_a_batch_that_hangs_is_named_and_a_sink_may_stop_its_own_run(spark, tmp_path):
    feed, reached, go_on = Feed(tmp_path / "in", DDL), threading.Event(), threading.Event()
    feed.add(rows(0))

    def sink(frame, batch_id):
        run.stop()
        reached.set()
        assert go_on.wait(60)

    flow = tg.pipeline("stuck", feed.stream(spark)).map(lambda t: t).to(sink)
    run = flow.start(str(tmp_path / "ck"), tasks=1)
    assert reached.wait(60)
    try:
        with pytest.raises(
            TidegateError, match=r"within 0.1 s: segment 'main' is in the step after 'compiled' of "
        ):
            run.stop(timeout=0.1)
    finally:
        go_on.set()
    run.stop()
    assert run.failure is None and len(run.results()) == 1


@pytest.mark.parametrize("part, target", [("_query", None), ("ControlLoop", "5 seconds")])
def test_a_start_that_fails_half_way_leaves_nothing_running(
    spark, tmp_path, monkeypatch, part, target
):
    """The query of the second segment cannot start, or the control loop cannot."""
    made, real, workers = [], getattr(start, part), []

    def fails(*given):
        made.append(given)
        if part == "ControlLoop" or len(made) == 2:
            raise RuntimeError("not now")
        return real(*given)

    monkeypatch.setattr(start, part, fails)
    monkeypatch.setattr(start, "start_workers", workers.append)
    flow = two_segments(Feed(tmp_path / "in", DDL), spark, Collected())
    with pytest.raises(RuntimeError, match="not now"):
        flow.start(str(tmp_path / "ck"), tasks=1, target=target)
    assert [query.name for query in spark.streams.active] == []
    assert workers == []
    assert "tidegate-run" not in [thread.name for thread in threading.enumerate()]


def test_a_second_run_of_a_pipeline_is_refused_before_anything_is_written(spark, tmp_path):
    flow = two_segments(Feed(tmp_path / "in", DDL), spark, Collected())
    run = flow.start(str(tmp_path / "ck"), tasks=1)
    try:
        with pytest.raises(AskedWrongly, match="a pipeline 'two' already runs in this"):
            flow.start(str(tmp_path / "other"), tasks=1)
        assert not (tmp_path / "other").exists()
        assert run.isActive
    finally:
        run.stop()
