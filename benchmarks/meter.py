"""The cost of measuring: the meter on the driver, and the arrival stamps counted by tasks.

A counting pipeline runs at full speed on files, with an arrival column and a loop that measures
every second. The driver's share is the meter's time over the time of the run. The tasks' share is
the time to count the stamps of a block of rows (every row, N_m = 1, and N_m = 10) over the time
that the run takes for such a block.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.benching import Bench, Options, at_most
from tidegate.pipelines.functions import count
from tidegate.pipelines.stream import pipeline
from tidegate.spark.loop.loop import ControlLoop
from tidegate.spark.measure.stamps import ArrivalSample
from tidegate.spark.session import session
from tidegate.spark.start import start

CORES = 2
ROWS = 200_000
KEYS = 50_000


def block(seed: int) -> pa.Table:
    """The rows of one micro-batch, which arrived within a second."""
    chance = np.random.default_rng(seed)
    at_us = 1_700_000_000_000_000 + np.sort(chance.integers(0, 1_000_000, ROWS))
    return pa.table(
        {
            "k": chance.integers(0, KEYS, ROWS),
            "at": pa.array(at_us).cast(pa.timestamp("us", "UTC")),
        }
    )


def stamp_s(every: int, repeats: int) -> float:
    """Seconds to count the stamps of one block."""
    sample, rows = ArrivalSample("at", every), block(0)
    sample.of(rows)
    began_s = time.perf_counter()
    for _ in range(repeats):
        sample.of(rows)
    return (time.perf_counter() - began_s) / repeats


def run(options: Options) -> Bench:
    """Time one run with the loop, then the stamps alone."""
    batches = 12 if options.quick else 40
    spark = session(f"local[{CORES}]", "bench-meter")
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as scratch:
        feed = Path(scratch) / "feed"
        feed.mkdir()
        for number in range(batches):
            pq.write_table(block(number), feed / f"{number:05d}.parquet")
        reader = spark.readStream.schema("k long, at timestamp").option("maxFilesPerTrigger", 1)
        flow = (
            pipeline("metered", reader.parquet(str(feed)), arrival="at")
            .keyed("count", count(), key="k")
            .to("noop")
        )
        options.say(f"{batches} batches of {ROWS:,} rows")
        live = start(
            flow.graph,
            checkpoint=str(Path(scratch) / "ck"),
            tasks=CORES,
            target="10 seconds",
            cores=CORES,
            policy="static",
        )
        loop = live.loop
        assert isinstance(loop, ControlLoop)
        began_s = time.monotonic()
        try:
            while len(live.results()) < batches and not live.awaitTermination(0.1):
                pass
            spent_s, run_s = loop.meter.spent_s, time.monotonic() - began_s
            durations = [result.duration_s for result in live.results()][batches // 3 :]
        finally:
            live.stop()
    block_core_s = float(np.median(durations)) * CORES
    repeats = 20 if options.quick else 100
    each, tenth = stamp_s(1, repeats), stamp_s(10, repeats)
    results = [
        {"part": "driver: the meter, a second of run", "ms": round(1000 * spent_s / run_s, 3)},
        {"part": f"tasks: stamps of {ROWS:,} rows, N_m = 1", "ms": round(1000 * each, 3)},
        {"part": f"tasks: stamps of {ROWS:,} rows, N_m = 10", "ms": round(1000 * tenth, 3)},
        {"part": f"a batch of {ROWS:,} rows, core time", "ms": round(1000 * block_core_s, 1)},
    ]
    driver = spent_s / (run_s * CORES)
    return Bench(
        "meter",
        results,
        [
            at_most("share of the cores, driver", driver, 0.01),
            at_most("share of a batch, stamps of every row", each / block_core_s, 0.01),
            at_most("both together", driver + each / block_core_s, 0.01),
        ],
    )
