"""The control loop on real Spark: it scales by itself, keeps records, and can be replayed."""

import dataclasses
import time

import pytest

import tidegate as tg
from tidegate.apps.waiting import Waiting, waiting_map
from tidegate.control.assemble import new_controller
from tidegate.control.assembly import Assembly
from tidegate.control.decision import Decision
from tidegate.control.replay import replay, replay_runs
from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions import count
from tidegate.recording import read_records
from tidegate.spark.loop.loop import ControlLoop
from tidegate.spark.loop.negotiate import LocalBudget
from tidegate.spark.measure.busy_cores import active_tasks
from tidegate.spark.measure.pipeline_meter import PipelineMeter
from tidegate.spark.measure.running_batch import running_arrivals
from tidegate.spark.measure.staleness import STALE_S, STUCK_S


def flow_of(spark, rate: str, wait_s: float):
    stream = tg.arrivals(spark, rate, keys="zipf:100,0.8", partitions=2)
    return (
        tg.pipeline("held", stream, arrival="timestamp")
        .map(waiting_map(wait_s), name="enrich", tasks=(1, 4))
        .keyed("count", Waiting(count(), wait_s), key="key", shards=16)
    )


def loop_of(run) -> ControlLoop:
    assert isinstance(run.loop, ControlLoop)
    return run.loop


def test_its_records_replay_to_the_same_decisions(spark, tmp_path, wait_for) -> None:
    """One brain, two bodies: what was decided on Spark is what a fresh controller decides."""
    flow = flow_of(spark, "constant:20", wait_s=0.001)
    run = flow.start(str(tmp_path / "ck"), target="1500 ms", cores=(1, 4), tasks=1)
    loop = loop_of(run)

    def measured() -> bool:
        seen = [r for r in list(loop.records) if r.measurement.latency is not None]
        return len(seen) >= 5 or loop.failure is not None

    try:
        wait_for(measured, run.queries["main"])
    finally:
        run.stop()
    assert loop.failure is None
    records = read_records(tmp_path / "ck")
    assert records == list(loop.records)
    rows = sum(r.rows_in for result in run.results() for r in result.of("count"))
    assert sum(tg.read_state(str(tmp_path / "ck"), "count")["count"].to_pylist()) == rows > 0
    measurement = next(r.measurement for r in records if r.measurement.latency is not None)
    assert {operator.name for operator in measurement.operators} == {"enrich", "count"}
    assert measurement.cores_granted == measurement.cores_asked

    def bare(decision):
        return dataclasses.replace(decision, notes=())

    again = replay(records, new_controller(loop.assembly))
    assert [bare(d) for d in again] == [bare(record.decision) for record in records]


def test_a_dry_run_goes_live_with_another_target(spark, tmp_path, wait_for) -> None:
    """`run.update` without a restart: what was only decided is done from the next tick on."""
    flow = flow_of(spark, "constant:20", wait_s=0.001)
    run = flow.start(
        str(tmp_path / "ck"), target="60 s", dry_run=True, scale_in_after="100 ms", tasks=4
    )
    loop = loop_of(run)

    def changed() -> bool:
        done = any(one.acted and one.decision.cores for one in list(loop.records))
        return done or loop.failure is not None

    try:
        wait_for(lambda: len(loop.records) >= 1, run.queries["main"])
        with pytest.raises(AskedWrongly, match="tick cannot change while it runs"):
            run.update(tick="5 s")
        with pytest.raises(AskedWrongly, match="lower the maximum"):
            run.update(target="50 s", cores=(1, 999))
        run.update(target="40 s", dry_run=False, cores=1)
        wait_for(changed, run.queries["main"])
        assert loop.failure is None
        wait_for(lambda: loop.negotiator.granted() == 1, run.queries["main"])
    finally:
        run.stop()
    records = read_records(tmp_path / "ck")
    first = next(one for one in records if one.tick > 1 and one.assembly is not None)
    assert [one.assembly is not None for one in records].count(True) == 2
    assert any(
        note.startswith("settings changed: target 60 s to 40 s, cores 1-")
        and note.endswith("to 1-1, dry run on to off")
        for note in first.decision.notes
    )
    assert not any(one.acted for one in records if one.tick < first.tick)
    assert {one.target_s for one in records if one.tick >= first.tick} == {40.0}
    (again,) = replay_runs(records, lambda record: Assembly.of(record.assembly or {}))
    assert all(one.same for one in again)
    with pytest.raises(AskedWrongly, match="has ended"):
        run.update(target="5 s")


def test_without_a_target_there_is_nothing_to_update(spark, tmp_path) -> None:
    run = flow_of(spark, "constant:20", wait_s=0.001).start(str(tmp_path / "ck"), tasks=1)
    try:
        with pytest.raises(AskedWrongly, match="was started without a target"):
            run.update(target="5 s")
    finally:
        run.stop()


def test_a_restart_begins_with_what_was_learned(spark, tmp_path, wait_for) -> None:
    place = str(tmp_path / "ck")
    options = {"target": "1500 ms", "cores": (1, 4), "tasks": 1}

    def run_until(done) -> ControlLoop:
        run = flow_of(spark, "constant:20", wait_s=0.001).start(place, **options)
        loop = loop_of(run)
        try:
            wait_for(lambda: loop.failure is not None or done(loop), run.queries["main"])
        finally:
            run.stop()
        assert loop.failure is None
        return loop

    def knows(loop: ControlLoop) -> bool:
        return bool(loop.records) and "main.w_s" in loop.records[-1].beliefs

    before = run_until(knows)
    assert before.records[0].recalled is None
    after = run_until(lambda loop: len(loop.records) > 0)
    first = after.records[0]
    assert "main.w_s" in first.beliefs
    assert any("begins with what a run learned" in note for note in first.decision.notes)
    for loop, run in zip((before, after), replay_runs(read_records(place), again), strict=True):
        assert len(run) == len(loop.records)
        assert all(one.same for one in run)


def again(first) -> Assembly:
    return Assembly.of(first.assembly)


def test_what_is_decided_holds_from_the_next_batch_on(spark, tmp_path, wait_for) -> None:
    flow = flow_of(spark, "constant:20", wait_s=0.0)
    run = flow.start(str(tmp_path / "ck"), target="30 seconds", cores=(1, 4), tasks=1, dry_run=True)
    loop = loop_of(run)
    try:
        wait_for(lambda: run.results(), run.queries["main"])
        loop.act(
            Decision(
                reason="by hand", cores=3, tasks={"count": 3, "enrich": 2}, moves={"count": {0: 2}}
            )
        )
        assert loop.negotiator.granted() == 3
        wait_for(lambda: run.results()[-1].plan.operators["count"].tasks == 3, run.queries["main"])
    finally:
        run.stop()
    plan = run.results()[-1].plan.operators
    assert plan["enrich"].tasks == 2
    assert plan["count"].route[0] == 2
    assert not any(record.acted for record in read_records(tmp_path / "ck"))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"cores": (3, 2)}, "minimum from 1 up to the maximum"),
        ({"cores": (1, 64)}, "the master has 4"),
        ({"policy": "latncy"}, "did you mean 'latency'"),
        ({"percentile": 42}, "give 50, 95 or 99"),
        ({"target": "fast"}, "fast"),
        ({"excluded": ["9-10"]}, "9-10"),
        ({"target": None, "cores": (1, 2)}, "give target="),
        ({"target": "1 ms", "shed": True}, "a target of 1 ms is below the floor of"),
        ({"trigger": "4 s", "target": "1500 ms", "shed": True}, "below the floor of 2 s"),
    ],
)
def test_a_wrong_wish_is_refused_before_anything_starts(spark, tmp_path, options, message):
    flow = flow_of(spark, "constant:10", wait_s=0.0)
    with pytest.raises(AskedWrongly, match=message):
        flow.start(str(tmp_path / "ck"), **{"target": "2 seconds", "cores": (1, 2), **options})
    assert not (tmp_path / "ck").exists()


def test_a_target_out_of_reach_is_said_at_the_start(spark, tmp_path) -> None:
    flow = flow_of(spark, "constant:10", wait_s=0.0)
    with pytest.warns(UserWarning, match="1 ms is below the floor of .* as fast as it can"):
        flow.start(str(tmp_path / "ck"), target="1 ms", cores=(1, 2)).stop()


def test_what_a_run_learned_is_known_to_the_next_start(spark, tmp_path, wait_for) -> None:
    flow = flow_of(spark, "constant:20", wait_s=0.001)
    run = flow.start(str(tmp_path / "ck"), target="5 seconds", cores=(1, 2), tasks=1)
    loop = loop_of(run)

    def learned() -> bool:
        return any("main.a0_s" in record.beliefs for record in list(loop.records))

    try:
        wait_for(learned, run.queries["main"])
    finally:
        run.stop()
    # A run in which every batch cost three seconds besides its rows.
    place = tmp_path / "ck" / "records.jsonl"
    slow = [
        dataclasses.replace(record, beliefs={**record.beliefs, "main.a0_s": 3.0})
        for record in read_records(tmp_path / "ck")
        if "main.a0_s" in record.beliefs
    ]
    place.write_text("".join(record.to_json() + "\n" for record in slow))
    with pytest.warns(UserWarning, match="earlier run, a target of 2 s is below the floor of 4.5"):
        flow.start(str(tmp_path / "ck"), target="2 seconds", cores=(1, 2), shed=True).stop()


def test_a_running_batch_tells_its_arrivals_before_it_is_over(spark, tmp_path, wait_for) -> None:
    stream = tg.arrivals(spark, "constant:200", keys="zipf:100,0.8", partitions=2)
    flow = (
        tg.pipeline("slow", stream, arrival="timestamp")
        .map(waiting_map(0.0), name="enrich", tasks=(1, 4))
        .keyed("count", Waiting(count(), 0.02), key="key", shards=16)
    )
    run = flow.start(str(tmp_path / "ck"), tasks=2)
    part = run.segments["main"]
    told = {}

    def caught() -> bool:
        """A batch that told its rows while it ran, and is over now."""
        plan, seen = part.running, running_arrivals(part)
        if plan is not None and seen is not None and part.running is plan:
            told[plan.batch_id] = seen
        return any(result.plan.batch_id in told for result in run.results())

    try:
        wait_for(caught, run.queries["main"])
    finally:
        run.stop()
    over = [result for result in run.results() if result.plan.batch_id in told]
    assert over
    for result in over:
        rows = sum(report.rows_in for report in result.of("enrich"))
        seen = told[result.plan.batch_id]
        assert seen.kept == seen.offered.rows == rows > 0
        assert result.started_s * 1e6 - 60e6 < seen.newest_us <= result.started_s * 1e6


def test_a_long_batch_is_at_work_and_not_stale(spark, tmp_path, wait_for) -> None:
    """While it runs its tasks count as busy, and only a minute without an end is a standstill."""
    stream = tg.arrivals(spark, "constant:100", keys="uniform:100", partitions=1)
    flow = (
        tg.pipeline("long", stream, arrival="timestamp")
        .map(waiting_map(0.02), name="enrich", tasks=(3, 3))
        .keyed("count", count(), key="key", shards=16, tasks=1)
    )
    run = flow.start(str(tmp_path / "ck"))
    part = run.segments["main"]
    try:
        wait_for(lambda: len(run.results()) > 1, run.queries["main"])
        meter = PipelineMeter(run, LocalBudget(3))
        meter.measure(time.time())  # all that has ended so far

        def at_work() -> bool:
            measured = meter.measure(time.time())
            ended = any(segment.batches for segment in measured.segments)
            return part.running is not None and not ended and measured.cores_busy == 3.0

        wait_for(at_work, run.queries["main"])
        wait_for(lambda: part.running is not None, run.queries["main"])
        now_s = time.time()
        assert active_tasks(spark) <= 4
        longest_s = max(result.duration_s for result in run.results())

        def measured_while_it_runs() -> bool:
            plan, fresh = part.running, PipelineMeter(run, LocalBudget(3))
            fresh.measure(now_s)
            late = fresh.measure(now_s + max(STALE_S, 5.0 * longest_s) + 1.0)
            if plan is None or part.running is not plan:
                return False  # it ended in between; the next one then
            assert late.stale is None
            return True

        wait_for(measured_while_it_runs, run.queries["main"])
        assert "no batch ended" in str(meter.measure(now_s + 30.0 * STUCK_S).stale)
    finally:
        run.stop()
