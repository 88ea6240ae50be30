"""Several pipelines in one application: they share its cores, and an overload is answered soon."""

import tidegate as tg
from tidegate.apps.waiting import waiting_map
from tidegate.spark.loop.loop import ControlLoop

WAIT_S = 0.02


def start(spark, tmp_path, name: str, target: str, rate: float, **options):
    stream = tg.arrivals(spark, f"constant:{rate}", keys="uniform:20", partitions=1)
    flow = (
        tg.pipeline(name, stream, arrival="timestamp")
        .shed(unique="seq")
        .map(waiting_map(WAIT_S), name="ask", tasks=(1, 4))
        .keyed("count", tg.count(), key="key", shards=16, tasks=1)
    )
    run = flow.start(str(tmp_path / name), target=target, cores=(1, 4), shed=True, **options)
    assert isinstance(run.loop, ControlLoop)
    return run


def test_two_pipelines_share_the_cores_and_count_what_they_shed(spark, tmp_path, wait_for):
    """Each is offered all that the four cores carry; alone, each would take them all."""
    runs = [
        start(spark, tmp_path, "tight", "2 seconds", 200.0),
        start(spark, tmp_path, "loose", "4 seconds", 200.0),
    ]
    loops = [run.loop for run in runs]

    def shared() -> bool:
        if any(loop.failure for loop in loops):
            return True
        last = [loop.records[-1] for loop in loops if loop.records]
        told = [record.measurement for record in last if record.share is not None]
        return (
            len(told) == 2
            and sum(m.cores_asked for m in told) == 4
            and all(m.keep < 1.0 for m in told)
            and all(sum(result.sources[0].shed for result in run.results()) for run in runs)
        )

    try:
        wait_for(shared, runs[0].queries["main"])
        asked = [loop.negotiator.asked for loop in loops]
    finally:
        for run in runs:
            run.stop()
    assert not any(loop.failure for loop in loops)
    assert sum(asked) <= 4
    for run, name in zip(runs, ("tight", "loose"), strict=True):
        counts = run.counts()["source"]
        state = tg.read_state(str(tmp_path / name), "count")["count"].to_pylist()
        assert sum(state) == counts.kept == counts.offered - counts.shed
        assert counts.shed > 0
    alone = start(spark, tmp_path, "after", "4 seconds", 10.0)
    try:
        wait_for(lambda: alone.loop.records, alone.queries["main"])
        assert alone.loop.records[-1].share is None
    finally:
        alone.stop()


def test_the_batch_after_a_late_one_is_planned_by_what_that_one_told(spark, tmp_path, wait_for):
    """A tick that comes every five minutes is no excuse: the loop decides before the next batch."""
    run = start(spark, tmp_path, "late", "1 second", 400.0, tick="5 minutes")
    try:
        wait_for(
            lambda: any(result.plan.keep.fraction < 1.0 for result in run.results()),
            run.queries["main"],
        )
        results = run.results()
    finally:
        run.stop()
    late = next(number for number, result in enumerate(results) if result.duration_s > 1.0)
    while results[late + 1].plan.batch_id < 2:  # the first batch says nothing about the next
        late += 1
    assert results[late + 1].plan.keep.fraction < 1.0
    began_s = results[late + 1].plan.at_us / 1e6
    ticks = [record.measurement.at_s for record in run.loop.records]
    assert any(results[late].ended_s <= at_s <= began_s for at_s in ticks)


def test_a_loop_ticks_when_it_is_hurried(spark, tmp_path, wait_for):
    run = start(spark, tmp_path, "idle", "30 seconds", 5.0, tick="5 minutes")
    try:
        assert run.loop.hurry(30.0)
        assert run.loop.hurry(30.0)
        assert len(run.loop.records) == 2
    finally:
        run.stop()
    run.loop.hurry(1.0)
    assert len(run.loop.records) == 2  # one that has been stopped ticks no more
