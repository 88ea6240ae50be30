"""A pipeline in its own process, for tests that kill it: it runs until it has read its whole feed.

    python chaos_driver.py ROOT MASTER ROUND

Rescales and reroutes at random while it runs. The sink writes one file per batch id, so that a
replay replaces its first try.
"""

import json
import os
import random
import sys
from pathlib import Path

import pyarrow.parquet as pq

import tidegate as tg

TASKS = 4
SHARDS = 32


def write_batch(directory: Path):
    def write(frame, batch_id: int) -> None:
        rows = sorted(frame.toArrow().to_pylist(), key=lambda row: row["k"])
        aside = directory / f".{batch_id}.{os.getpid()}"
        aside.write_text(json.dumps(rows))
        target = directory / f"{batch_id:06d}.json"
        if target.exists() and json.loads(target.read_text()) != rows:
            (directory / f"differs-{batch_id}").write_text("a replay gave other rows")
        aside.rename(target)

    return write


def main(root: Path, master: str, attempt: int) -> None:
    spark = tg.session(master, "chaos", **{"spark.task.maxFailures": 8})
    stream = (
        spark.readStream.schema("k string, v long")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(root / "in"))
    )
    summary = tg.aggregate(n=tg.count(), total=tg.sum("v"))
    flow = (
        tg.pipeline("chaos", stream)
        .map(lambda table: table, name="same")
        .keyed("sums", summary, key="k", shards=SHARDS)
        .to(write_batch(root / "out"))
    )
    chance = random.Random(attempt)
    run = flow.start(str(root / "ck"), tasks=2)
    (root / f"started-{attempt}").write_text(str(os.getpid()))
    # Count rows, not batches: if a driver dies after Spark has logged a file but not yet its
    # offsets, the next micro-batch has two files.
    total = sum(pq.read_metadata(file).num_rows for file in (root / "in").glob("*.parquet"))
    done, counted = -1, 0
    while counted < total:
        if run.awaitTermination(0.1):
            break
        results = run.results()
        if results and results[-1].plan.batch_id != done:
            done = results[-1].plan.batch_id
            counted = sum(tg.read_state(str(root / "ck"), "sums")["n"].to_pylist())
            tasks = chance.randint(1, TASKS)
            run.rescale("sums", tasks)
            run.reroute("sums", {chance.randrange(SHARDS): chance.randrange(tasks)})
    run.stop()
    (root / "finished").write_text("yes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
