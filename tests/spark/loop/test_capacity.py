"""MST's policies on real Spark: they learn from saturated batches and scale the pipeline."""

import tidegate as tg
from tidegate.apps.waiting import Waiting, waiting_map
from tidegate.control.assembly import Assembly
from tidegate.control.replay import replay_runs
from tidegate.pipelines.functions import count
from tidegate.recording import read_records
from tidegate.spark.loop.loop import ControlLoop


def test_mst_7_scales_out_by_what_its_batches_show(spark, tmp_path, wait_for) -> None:
    """One core does 70 rows a second, of which the batches' overhead leaves less than 60."""
    stream = tg.arrivals(spark, "constant:60", keys="uniform:100", partitions=2)
    flow = (
        tg.pipeline("planned", stream, arrival="timestamp")
        .map(waiting_map(0.007), name="enrich", tasks=(1, 4))
        .keyed("count", Waiting(count(), 0.007), key="key", shards=16)
    )
    place = str(tmp_path / "ck")
    run = flow.start(
        place, target="1500 ms", cores=(1, 4), tasks=1, policy="mst-7(cycle=2s, qos=0.9)"
    )
    loop = run.loop
    assert isinstance(loop, ControlLoop)

    def scaled() -> bool:
        wide = run.allocation()["count"].tasks >= 2 and loop.negotiator.granted() >= 2
        return wide or loop.failure is not None

    try:
        wait_for(scaled, run.queries["main"])
    finally:
        run.stop()
    assert loop.failure is None
    records = read_records(place)
    change = next(record for record in records if record.decision.cores is not None)
    assert change.policy == "mst-7"
    assert change.acted
    assert change.beliefs["capacity"] > 0.0
    assert "is expected" in change.decision.reason
    (again,) = replay_runs(records, lambda first: Assembly.of(first.assembly))
    assert all(one.same for one in again)
