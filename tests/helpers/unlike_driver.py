"""A keyed operator on two executors of which one is slow; reports where its shards went.

    python unlike_driver.py ROOT

Prints one JSON document. It needs its own process, because a process has only one Spark.
"""

import json
import sys
import time
from pathlib import Path

import pyarrow as pa

import tidegate as tg
from tests.helpers.uneven_driver import Work
from tidegate.spark.loop.loop import ControlLoop

PATIENCE_S = 150.0
SHARDS = 32


def main(root: Path) -> None:
    spark = tg.session("local-cluster[2,1,1024]", "unlike")
    claim = root / "slow"
    work = Work(str(claim))

    def count(rows: pa.Table, state: pa.Table) -> tg.Update:
        work(rows)
        now = rows.group_by("key").aggregate([("key", "count")]).rename_columns(["key", "n"])
        both = pa.concat_tables([now, state.select(["key", "n"])]).group_by("key")
        total = both.aggregate([("n", "sum")]).rename_columns(["key", "n"])
        return tg.Update(output=total, upserts=total)

    schema = "key bigint, n bigint"
    stream = tg.arrivals(spark, "constant:150", keys="uniform:300", partitions=2)
    flow = tg.pipeline("unlike", stream, arrival="timestamp").keyed(
        "count", count, key="key", state=schema, output=schema, shards=SHARDS
    )
    run = flow.start(str(root / "ck"), target="20 seconds", cores=(2, 2), tasks=2)
    loop = run.loop
    assert isinstance(loop, ControlLoop)
    until_s = time.time() + PATIENCE_S

    def slow_rows() -> float:
        """The share of the newest rows that the slow executor had."""
        reports = [one for result in run.results()[-3:] for one in result.of("count")]
        here = sum(one.rows_in for one in reports if one.executor.endswith(claim.read_text()))
        return here / max(sum(one.rows_in for one in reports), 1)

    moved = False
    while time.time() < until_s and run.isActive:
        moved = any(record.acted and record.decision.moves for record in loop.records)
        if moved and slow_rows() < 0.4:
            break
        time.sleep(0.5)
    run.stop()
    records = list(loop.records)
    told = {
        "moved": moved,
        "slow_rows": slow_rows(),
        "reasons": [one.decision.reason for one in records if one.decision.moves],
        "notes": sorted({note for one in records for note in one.decision.notes}),
        "counted": sum(tg.read_state(str(root / "ck"), "count")["n"].to_pylist()),
        "rows": sum(r.rows_in for result in run.results() for r in result.of("count")),
        "failure": None if loop.failure is None else str(loop.failure),
    }
    spark.stop()
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
