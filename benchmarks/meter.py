"""The cost of measuring: the meter on the driver, and the stamps and traces noted by tasks.

A counting pipeline runs at full speed on files, with an arrival column and a loop that measures
every second; once as one segment, and once with a cut, where sampled inputs are followed by traces.
The driver's share is the meter's time over the time of the run. The tasks' share is the time to
count the stamps of a block of rows (every row, N_m = 1, and N_m = 10) over the time that the run
takes for such a block. The share of the traces is what they add to the stages of such a block on
Spark. Where a single cut follows, the last operator in front of it tells the driver which traces
leave it. Where rows go on to a further cut or into a loop, a hidden column carries the traces.

The share of the live page is the time to take each record of the run, to bring one open browser up
to date, with all that is sent to it, and to answer Prometheus, once a second.
"""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bokeh.document import Document
from bokeh.protocol import Protocol
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.benching import Bench, Options, at_most
from tidegate.control.record import Record
from tidegate.pipelines.functions import count
from tidegate.pipelines.stream import pipeline
from tidegate.spark.batch.keyed_task import traced_keys
from tidegate.spark.batch.traces import FIELD, Marks, TraceSample
from tidegate.spark.loop.loop import ControlLoop
from tidegate.spark.measure.stamps import ArrivalSample
from tidegate.spark.session import session
from tidegate.spark.start import start
from tidegate.view.live.metrics import Exposition
from tidegate.view.live.page.document import PageSession
from tidegate.view.live.page.feed import Feed

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


@dataclass(frozen=True, slots=True)
class Metered:
    """One run of the pipeline."""

    driver_ms: float
    """The meter's time in a second of the run."""
    block_core_s: float
    """Core time of a batch of the first segment."""
    records: list[Record]
    """One for each second of the run."""


def metered(spark: SparkSession, feed: Path, scratch: Path, batches: int, cut: bool) -> Metered:
    """Run the pipeline over all files, with or without a cut."""
    reader = spark.readStream.schema("k long, at timestamp").option("maxFilesPerTrigger", 1)
    flow = pipeline("metered", reader.parquet(str(feed)), arrival="at").keyed(
        "count", count(), key="k"
    )
    if cut:
        flow = flow.cut("between").map(lambda rows: rows, name="behind")
    flow = flow.to("noop")
    live = start(
        flow.graph,
        checkpoint=str(scratch / f"ck-{cut}"),
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
        records = list(loop.records)
        durations = [result.duration_s for result in live.results()][batches // 3 :]
    finally:
        live.stop()
    return Metered(1000 * spent_s / run_s, float(np.median(durations)) * CORES, records)


def page_ms(records: list[Record], repeats: int) -> float:
    """Milliseconds of CPU for a record: on the page of one open browser, and in the metrics."""
    feed, document, changes = Feed("metered"), Document(), list[Any]()
    feed.add(records[0])
    session = PageSession(document, [feed], "", "")
    exposition = Exposition(lambda: [seen] if (seen := feed.watched()) else [])
    document.on_change(changes.append)
    began_s = time.process_time()
    for record in records * repeats:
        feed.add(record)
        session.update()
        if changes:
            Protocol().create("PATCH-DOC", changes).content  # noqa: B018 (it is serialised here)
        changes.clear()
        exposition.text()
    return 1000 * (time.process_time() - began_s) / (len(records) * repeats)


KINDS = ("plain", "told", "carried")
"""How the stages are timed: without traces, with traces told by the operator, and in a column."""


def traces_core_s(spark: SparkSession, file: Path, repeats: int) -> dict[str, float]:
    """Core seconds that traces add to the stages of one block, told and carried."""
    rows = spark.read.parquet(str(file)).repartition(CORES).persist()
    frames = {kind: stages(rows, kind) for kind in KINDS}
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for turn in range(repeats + 2):  # by turns, so that all meet the same machine
        for kind, frame in frames.items():
            began_s = time.perf_counter()
            frame.write.format("noop").mode("append").save()
            if turn >= 2:
                times[kind].append(time.perf_counter() - began_s)
    rows.unpersist()
    # Each turn is a pair of neighbours in time, so the machine's drift cancels out.
    return {
        kind: max(float(np.median(np.subtract(times[kind], times["plain"]))), 0.0) * CORES
        for kind in KINDS[1:]
    }


def stages(rows: DataFrame, kind: str) -> DataFrame:
    """A count by key and the writing of its output, as in a micro-batch, without the state."""
    routed = rows.selectExpr(
        "*",
        "xxhash64(k) as __hash",
        "monotonically_increasing_id() as __order",
        f"cast(pmod(xxhash64(k), {CORES}) as int) as __task",
    ).repartitionById(CORES, F.col("__task"))

    def counted(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        given = pa.Table.from_batches(list(blocks))
        output = given.group_by("k").aggregate([([], "count_all")])
        if kind != "plain":
            marks, keys = traced_keys(given, ["k"], TraceSample("at"))
            passed = marks.settled.grouped(keys, output)
            np.unique(passed.traces)
            if kind == "carried":
                output = output.append_column(FIELD, passed.column(output.num_rows))
        yield from output.to_batches()

    def noted(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for block in blocks:
            marks = Marks.of(block)
            yield pa.RecordBatch.from_pydict({"traces": [len(np.unique(marks.traces))]})

    hidden = ", __trace binary" if kind == "carried" else ""
    return routed.mapInArrow(counted, f"k long, n long{hidden}").mapInArrow(noted, "traces long")


def run(options: Options) -> Bench:
    """Time one run of each kind with the loop, then the stamps and the traces alone."""
    batches = 12 if options.quick else 40
    repeats = 20 if options.quick else 100
    spark = session(f"local[{CORES}]", "bench-meter")
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as scratch:
        feed = Path(scratch) / "feed"
        feed.mkdir()
        for number in range(batches):
            pq.write_table(block(number), feed / f"{number:05d}.parquet")
        options.progress.expect(4)
        options.progress.step(f"{batches} batches of {ROWS:,} rows, in one segment")
        plain = metered(spark, feed, Path(scratch), batches, cut=False)
        options.progress.step(f"{batches} batches of {ROWS:,} rows, with a cut")
        cut = metered(spark, feed, Path(scratch), batches, cut=True)
        options.progress.step("traces alone")
        traces = traces_core_s(spark, feed / "00000.parquet", repeats // 2)
    options.progress.step("stamps and the live page alone")
    each, tenth = stamp_s(1, repeats), stamp_s(10, repeats)
    shown_ms = page_ms(plain.records, max(1, 10 * repeats // len(plain.records)))
    rows = f"{ROWS:,} rows"
    results = [
        {"part": "driver: the meter, a second of run", "ms": round(plain.driver_ms, 3)},
        {"part": "driver: the meter, a second of run with a cut", "ms": round(cut.driver_ms, 3)},
        {"part": "driver: the live page and metrics, a second of run", "ms": round(shown_ms, 3)},
        {"part": f"tasks: stamps of {rows}, N_m = 1", "ms": round(1000 * each, 3)},
        {"part": f"tasks: stamps of {rows}, N_m = 10", "ms": round(1000 * tenth, 3)},
        *(
            {"part": f"tasks: traces of {rows}, {kind}", "ms": round(1000 * took_s, 3)}
            for kind, took_s in traces.items()
        ),
        {"part": f"a batch of {rows}, core time", "ms": round(1000 * plain.block_core_s, 1)},
        {"part": f"a batch of {rows} to a cut, core time", "ms": round(1000 * cut.block_core_s, 1)},
    ]
    driver, cut_driver = (one.driver_ms / 1000 / CORES for one in (plain, cut))
    stamps = each / plain.block_core_s
    told, carried = (traces[kind] / cut.block_core_s for kind in KINDS[1:])
    total = cut_driver + each / cut.block_core_s + told
    return Bench(
        "meter",
        results,
        [
            at_most("share of the cores, driver", driver, 0.01),
            at_most("share of the cores, live page and metrics", shown_ms / 1000 / CORES, 0.01),
            at_most("share of a batch, stamps of every row", stamps, 0.01),
            at_most("both together", driver + stamps, 0.01),
            at_most("share of a batch, traces on the way to a cut", told, 0.01),
            at_most("share of a batch, traces on the way to a second cut", carried, 0.01),
            at_most("all together, with a cut", total, 0.015),
        ],
    )
