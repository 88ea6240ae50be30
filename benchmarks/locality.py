"""State locality: shard reads from the executor's own cache on four real executors.

It runs on `local-cluster[4,1,1024]`, with a cache directory for each executor, in four phases: no
change; a rescale from 4 to 6 tasks; no change; an executor is killed. It counts shards read from
the executor's own cache and from the durable state, and the bytes fetched from there.
"""

import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import tidegate as tg
from tidegate.benching import Aim, Bench, Options, at_least, at_most
from tidegate.spark.session import session

EXECUTORS = 4
SHARDS = 256
ROWS = 20_000
"""Of each micro-batch."""


def add(feed: Path, number: int) -> None:
    """One micro-batch that touches every shard."""
    chance = np.random.default_rng(number)
    keys = pa.array(chance.integers(0, 20_000, ROWS)).cast(pa.string())
    aside = feed / f".{number:05d}"
    pq.write_table(pa.table({"k": keys, "v": np.ones(ROWS, dtype=np.int64)}), aside)
    os.utime(aside, (1e9 + number, 1e9 + number))
    aside.rename(feed / f"{number:05d}.parquet")


def executor_pids() -> list[int]:
    """The executor processes of this driver, found by the session's directories."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command and _below_us(parent):
            found.append(int(entry.name))
    return found


def _below_us(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return False


class Watched:
    """A keyed count that is fed a batch at a time, and where its tasks read their shards from."""

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.feed, self.checkpoint = root / "feed", str(root / "ck")
        self.feed.mkdir()
        reader = spark.readStream.schema("k string, v long").option("maxFilesPerTrigger", 1)
        flow = tg.pipeline("local", reader.parquet(str(self.feed))).keyed(
            "n", tg.count(), key="k", shards=SHARDS
        )
        self.run = flow.start(self.checkpoint, tasks=EXECUTORS, cache="tidegate-cache")
        self.batches = 0

    def phase(self, name: str, batches: int) -> dict[str, Any]:
        """So many batches, and what their tasks read in all."""
        before = len(self.run.results())
        for _ in range(batches):
            add(self.feed, self.batches)
            self.batches += 1
            self.run.processAllAvailable()
        reports = [one for result in self.run.results()[before:] for one in result.of("n")]
        own = sum(report.own_reads for report in reports)
        durable = sum(report.durable_reads for report in reports)
        return {
            "phase": name,
            "batches": batches,
            "own": own,
            "durable": durable,
            "durable_bytes": sum(report.durable_bytes for report in reports),
            "own_share": round(own / max(1, own + durable), 4),
        }

    def rescale(self, tasks: int) -> int:
        """From the next batch on; the number of shards that another task gets."""
        old = self.run.allocation()["n"].route
        self.run.rescale("n", tasks)
        return sum(a != b for a, b in zip(old, self.run.allocation()["n"].route, strict=True))


def run(options: Options) -> Bench:
    """Run the four phases."""
    spark = session(f"local-cluster[{EXECUTORS},1,1024]", "bench-locality")
    calm = 6 if options.quick else 15
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as scratch:
        watched = Watched(spark, Path(scratch))
        options.progress.expect(2 + calm + 1 + calm + 6 + calm)

        def phase(name: str, batches: int) -> dict[str, Any]:
            options.progress.step(name, batches)
            results.append(watched.phase(name, batches))
            return results[-1]

        phase("first batches", 2)
        steady = phase("nothing changed", calm)
        moved = watched.rescale(EXECUTORS + 2)
        rescaled = phase("rescale from 4 to 6 tasks", 1)
        rescaled["shards_moved"] = moved
        after = phase("nothing changed again", calm)
        os.kill(executor_pids()[0], signal.SIGKILL)
        lost = phase("an executor was killed, another came", 6)
        lost["shards_of_a_lost_executor"] = SHARDS // EXECUTORS
        healed = phase("after the loss", calm)
        counted = sum(tg.read_state(watched.checkpoint, "n")["count"].to_pylist())
        watched.run.stop()
    arrived = watched.batches * ROWS
    return Bench(
        "locality",
        results,
        [
            at_least("own share when nothing changed", steady["own_share"], 0.95),
            at_least("own share after the rescale settled", after["own_share"], 0.95),
            at_least("own share after an executor was lost", healed["own_share"], 0.95),
            at_most("shards fetched at the rescale", rescaled["durable"], moved),
            Aim("rows counted of all", counted / arrived, "= 1", counted == arrived),
        ],
    )
