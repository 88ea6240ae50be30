"""State stays where it is: shard reads from the executor's own cache on four real executors.

`local-cluster[4,1,1024]`, each executor with a cache directory of its own. Phases: nothing changes;
a rescale from 4 to 6 tasks; nothing again; an executor is killed. Counted: shards read from the
executor's own cache and from the durable part of the state, and the bytes fetched from there.
"""

import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tidegate as tg
from tidegate.benching import Aim, Bench, Options, at_least, at_most
from tidegate.spark.session import session

EXECUTORS = 4
SHARDS = 256


def add(feed: Path, number: int) -> None:
    """One micro-batch that touches every shard."""
    chance = np.random.default_rng(number)
    keys = pa.array(chance.integers(0, 20_000, 20_000)).cast(pa.string())
    aside = feed / f".{number:05d}"
    pq.write_table(pa.table({"k": keys, "v": np.ones(20_000, dtype=np.int64)}), aside)
    os.utime(aside, (1e9 + number, 1e9 + number))
    aside.rename(feed / f"{number:05d}.parquet")


def executor_pids() -> list[int]:
    """Executor processes of this driver, told by the session's own directories."""
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


def run(options: Options) -> Bench:
    """The four phases."""
    spark = session(f"local-cluster[{EXECUTORS},1,1024]", "bench-locality")
    calm = 6 if options.quick else 15
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as scratch:
        root = Path(scratch)
        feed = root / "feed"
        feed.mkdir()
        reader = spark.readStream.schema("k string, v long").option("maxFilesPerTrigger", 1)
        flow = tg.pipeline("local", reader.parquet(str(feed))).keyed(
            "n", tg.count(), key="k", shards=SHARDS
        )
        run_ = flow.start(str(root / "ck"), tasks=EXECUTORS, cache="tidegate-cache")
        number = 0

        def phase(name: str, batches: int) -> dict[str, Any]:
            nonlocal number
            options.say(name)
            before = len(run_.results())
            for _ in range(batches):
                add(feed, number)
                number += 1
                run_.processAllAvailable()
            fresh = run_.results()[before:]
            own = sum(report.own_reads for result in fresh for report in result.of("n"))
            durable = sum(report.durable_reads for result in fresh for report in result.of("n"))
            fetched = sum(report.durable_bytes for result in fresh for report in result.of("n"))
            row = {
                "phase": name,
                "batches": batches,
                "own": own,
                "durable": durable,
                "durable_bytes": fetched,
            }
            results.append({**row, "own_share": round(own / max(1, own + durable), 4)})
            return results[-1]

        phase("first batches", 2)
        steady = phase("nothing changed", calm)
        old = run_.allocation()["n"].route
        run_.rescale("n", EXECUTORS + 2)
        moved = sum(a != b for a, b in zip(old, run_.allocation()["n"].route, strict=True))
        rescaled = phase("rescale from 4 to 6 tasks", 1)
        after = phase("nothing changed again", calm)
        victims = executor_pids()
        os.kill(victims[0], signal.SIGKILL)
        lost = phase("an executor was killed, another came", 6)
        healed = phase("after the loss", calm)
        counted = sum(tg.read_state(str(root / "ck"), "n")["count"].to_pylist())
        run_.stop()
    results[2]["shards_moved"] = moved
    lost["shards_of_a_lost_executor"] = SHARDS // EXECUTORS
    return Bench(
        "locality",
        results,
        [
            at_least("own share when nothing changed", steady["own_share"], 0.95),
            at_least("own share after the rescale settled", after["own_share"], 0.95),
            at_least("own share after an executor was lost", healed["own_share"], 0.95),
            at_most("shards fetched at the rescale", rescaled["durable"], moved),
            Aim(
                "rows counted of all",
                counted / (number * 20_000),
                "= 1",
                counted == number * 20_000,
            ),
        ],
    )
