"""The control loop on real Spark: it scales by itself, keeps records, and can be replayed."""

import dataclasses

import pytest

import tidegate as tg
from tidegate.apps.waiting import Waiting, waiting_map
from tidegate.control.replay import replay
from tidegate.errors import AskedWrongly
from tidegate.pipelines.functions import count
from tidegate.recording import read_records
from tidegate.spark.loop import ControlLoop, new_controller


def flow_of(spark, rate: str, seconds: float, wait_s: float):
    stream = tg.arrivals(spark, rate, keys="zipf:100,0.8", seconds=seconds, partitions=2)
    return (
        tg.pipeline("held", stream, arrival="timestamp")
        .map(waiting_map(wait_s), name="enrich", tasks=(1, 4))
        .keyed("count", Waiting(count(), wait_s), key="key", shards=16)
    )


def counted(run) -> int:
    return sum(r.rows_in for result in run.results() for r in result.of("count"))


def test_it_scales_out_by_itself_and_its_records_replay_to_the_same_decisions(
    spark, tmp_path, wait_for
) -> None:
    flow = flow_of(spark, "step:20@0,250@4", 12, wait_s=0.004)
    run = flow.start(
        str(tmp_path / "ck"), target="1500 ms", cores=(1, 4), tasks=1, between_changes="1 second"
    )
    loop = run.loop
    assert isinstance(loop, ControlLoop)
    try:
        wait_for(lambda: counted(run) == 80 + 250 * 8, run.queries["main"])
    finally:
        run.stop()
    assert loop.failure is None
    records = read_records(tmp_path / "ck")
    assert records == list(loop.records)
    assert max(record.measurement.cores_asked for record in records) > 1, "it never scaled out"
    tasks = {r.plan.operators["count"].tasks for r in run.results()}
    assert len(tasks) > 1, "decisions changed no micro-batch"
    assert sum(tg.read_state(str(tmp_path / "ck"), "count")["count"].to_pylist()) == 2080

    def bare(decision):
        return dataclasses.replace(decision, notes=())

    again = replay(records, new_controller(loop.options))
    assert [bare(d) for d in again] == [bare(record.decision) for record in records]
    assert loop.meter.spent_s < 0.05 * sum(r.measurement.interval_s for r in records)


def test_a_dry_run_decides_and_changes_nothing(spark, tmp_path, wait_for) -> None:
    flow = flow_of(spark, "constant:150", 6, wait_s=0.004)
    run = flow.start(str(tmp_path / "ck"), target="500 ms", cores=(1, 4), tasks=1, dry_run=True)
    try:
        wait_for(lambda: counted(run) == 900, run.queries["main"])
    finally:
        run.stop()
    records = read_records(tmp_path / "ck")
    assert not any(record.acted for record in records)
    assert {r.plan.operators["count"].tasks for r in run.results()} == {1}


@pytest.mark.parametrize(
    "options, message",
    [
        ({"cores": (3, 2)}, "minimum from 1 up to the maximum"),
        ({"cores": (1, 64)}, "the master has 4"),
        ({"policy": "tidegat"}, "did you mean 'tidegate'"),
        ({"percentile": 42}, "give 50, 95 or 99"),
        ({"target": "fast"}, "fast"),
        ({"excluded": ["9-10"]}, "9-10"),
        ({"target": None, "cores": (1, 2)}, "give target="),
    ],
)
def test_a_wrong_wish_is_refused_before_anything_starts(spark, tmp_path, options, message):
    flow = flow_of(spark, "constant:10", 1, wait_s=0.0)
    with pytest.raises(AskedWrongly, match=message):
        flow.start(str(tmp_path / "ck"), **{"target": "2 seconds", "cores": (1, 2), **options})
    assert not (tmp_path / "ck").exists()
