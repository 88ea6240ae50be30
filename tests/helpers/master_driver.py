"""A pipeline with a target on a standalone cluster, for a test that stops the master meanwhile.

    python master_driver.py ROOT MASTER

It runs until the file ROOT/enough exists. ROOT/so-far has its ticks and batches meanwhile, and
ROOT/seen.json what it saw in all.
"""

import json
import sys
from pathlib import Path

import tidegate as tg


def main(root: Path, master: str) -> None:
    spark = tg.session(
        master,
        "master-gone",
        **{"spark.executor.cores": 1, "spark.executor.memory": "512m", "spark.cores.max": 4},
    )
    stream = tg.arrivals(spark, "constant:2000", keys="zipf:50,0.5", seed=3)
    flow = tg.pipeline("gone", stream, arrival="timestamp").keyed("n", tg.count(), key="key")
    run = flow.to("noop").start(
        str(root / "ck"), target="3 seconds", cores=(1, 4), shared_checkpoint=True
    )
    while not (root / "enough").exists():
        (root / ".seen").write_text(f"{len(run.loop.records)} {len(run.results())}")
        (root / ".seen").rename(root / "so-far")
        if run.awaitTermination(0.2):
            break
    run.stop()
    records = list(run.loop.records)
    state = tg.read_state(str(root / "ck"), "n")
    done = sum(sum(report.rows_in for report in result.of("n")) for result in run.results())
    seen = {
        "ticks": len(records),
        "rows in state": sum(state["count"].to_pylist()),
        "rows in results": done,
        "cores": sorted({record.measurement.cores_granted for record in records}),
    }
    (root / "seen.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
