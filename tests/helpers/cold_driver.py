"""A light pipeline in a process of its own, whose JVM has run nothing yet.

    python cold_driver.py ROOT

The target is one that a first micro-batch on a cold JVM misses. What happened goes to
ROOT/report.json. A slow machine may take as long as it likes to warm up.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import tidegate as tg
from tidegate.spark import warm_up

ROWS_PER_S = 20
BATCHES = 6
PATIENCE_S = 300.0


def main(root: Path) -> None:
    spark = tg.session("local[2]", "cold")
    stream = tg.arrivals(spark, f"constant:{ROWS_PER_S}", keys="uniform:10", partitions=2)
    flow = (
        tg.pipeline("cold", stream, arrival="timestamp")
        .map(lambda table: table.select(["key"]), schema="key long", name="pick", tasks=(1, 2))
        .keyed("count", tg.count(), key="key", shards=16)
    )
    warm_up.PATIENCE_S = PATIENCE_S
    run = flow.start(str(root / "ck"), target="3 seconds", cores=(1, 2))
    until_s, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while len(run.results()) < BATCHES and run.isActive and time.monotonic() < until_s:
        pause.wait(0.05)
    run.stop()
    loop: Any = run.loop
    records = list(loop.records)
    batches = [b for r in records for s in r.measurement.segments for b in s.batches]
    counted = tg.read_state(str(root / "ck"), "count")["count"].to_pylist()
    report = {
        "asked": sorted({r.measurement.cores_asked for r in records}),
        "first_notes": records[0].decision.notes,
        "later_notes": [note for r in records[1:] for note in r.decision.notes],
        "rows": sum(r.rows_in for result in run.results() for r in result.of("count")),
        "counted": sum(counted),
        "warmed_s": None if run.warmed is None else run.warmed.took_s,
        "durations_s": [batch.duration_s for batch in batches],
    }
    (root / "report.json").write_text(json.dumps(report))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
