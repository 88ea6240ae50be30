"""A pipeline in its own process, for tests that kill it: it runs until it has read as many
rows as the file ROOT/wanted says.

    python chaos_driver.py ROOT CHECKPOINT ROUND

Rescales and reroutes at random while it runs. The sink writes one file per batch id, so that a
replay replaces its first try.
"""

import json
import os
import random
import sys
from pathlib import Path

import tidegate as tg
from tidegate.errors import AskedWrongly

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


def counted(checkpoint: str) -> int:
    """The rows that are in the committed state."""
    try:
        return sum(tg.read_state(checkpoint, "sums")["n"].to_pylist())
    except AskedWrongly:  # no batch is committed yet
        return 0


def main(root: Path, checkpoint: str, attempt: str) -> None:
    spark = tg.session("local-cluster[2,2,1024]", "chaos", **{"spark.task.maxFailures": 8})
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
    run = flow.start(checkpoint, tasks=2)
    (root / f"started-{attempt}").write_text(str(os.getpid()))
    # Count rows, not batches: if a driver dies after Spark has logged a file but not yet its
    # offsets, the next micro-batch has two files.
    done = None
    while counted(checkpoint) < int((root / "wanted").read_text()):
        if run.awaitTermination(0.1):
            break
        results = run.results()
        if results and results[-1].plan.batch_id != done:
            done = results[-1].plan.batch_id
            tasks = chance.randint(1, TASKS)
            run.rescale("sums", tasks)
            run.reroute("sums", {chance.randrange(SHARDS): chance.randrange(tasks)})
    run.stop()
    (root / "finished").write_text("yes")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
