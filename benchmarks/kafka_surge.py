"""Load 1x, 4x, 1x from a Kafka broker on a cluster: a pipeline of ours, and a program of Spark's.

Both run on `local-cluster`, so that cores are executors that have to be started and released. Our
pipeline is the demo's, whose operators sleep, so that executors help on a machine with few cores.
`static peak` has the cores that the micro-batch model gives for the highest load. The program is
`structured_kafka_wordcount.py` as Spark ships it, under `tidegate run`. Its counts are those of the
last table that it prints.

Options: `--seconds 300`, `--only pipeline|program`, `--cluster 5x2` (executors of the pipeline and
the cores of each), `--rate 4000` (records per second of the program before and after the surge),
`--target '6 seconds'` (of the program).
"""

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.kafka_bodies.wordcount import PROGRAM, Cluster, RunningWordCount

from tidegate.apps.surge import WARM_S, peak_cores, run_surge
from tidegate.benching import Aim, Bench, Options, at_least, at_most
from tidegate.control.record import Record
from tidegate.errors import TidegateError
from tidegate.spark.kafka.broker import Broker
from tidegate.spark.kafka.produced import Produced
from tidegate.spark.kafka.producer import ProducerProcess
from tidegate.spark.kafka.topic_load import TopicLoad
from tidegate.spark.kafka.topics import create_topic
from tidegate.spark.session import session
from tidegate.view.summary import summarise

TARGET_S = 6.0
"""An executor takes some seconds to come, and rows wait for it meanwhile."""
CLUSTER = "5x2"
"""Executors and the cores of each: as many processes as a machine with few cores starts in time."""
EXECUTORS = 3
WORDS = 16
"""The program prints the first twenty words."""
_PATIENCE_S = 180.0


def run(options: Options) -> Bench:
    """Run our pipeline, then the program."""
    seconds = float(options.extra.get("seconds", 60.0 if options.quick else 300.0))
    only = options.extra.get("only")
    results: list[dict[str, Any]] = []
    aims: list[Aim] = []
    for name, body in (("pipeline", _pipeline), ("program", _program)):
        if only in (None, name):
            rows, found = body(options, seconds)
            results += rows
            aims += found
    return Bench("kafka_surge", results, aims)


def _pipeline(options: Options, seconds: float) -> tuple[list[dict[str, Any]], list[Aim]]:
    """The demo's pipeline, under our policy and with a fixed number of executors."""
    executors, cores_each = map(int, options.extra.get("cluster", CLUSTER).split("x"))
    # Executors come whole, for a static allocation as well.
    peak = -(-peak_cores(target_s=TARGET_S) // cores_each) * cores_each
    elastic = (cores_each, executors * cores_each)
    contenders: list[tuple[str, str, int | tuple[int, int]]] = [("tidegate", "latency", elastic)]
    if not options.quick:
        contenders.append(("static peak", "static", peak))
    results = []
    options.progress.doing(f"starting a broker and {executors} executors of {cores_each} cores")
    master = f"local-cluster[{executors},{cores_each},1024]"
    spark = session(master, "bench-kafka-surge", kafka=True)
    try:
        told = options.progress.each(contenders, lambda one: f"{one[0]}: {seconds:.0f} s of load")
        for name, policy, cores in told:
            surge = run_surge(
                spark, seconds, policy=policy, cores=cores, target_s=TARGET_S, kafka=True
            )
            found = _judged(surge.records, seconds, peak)
            results.append({"body": f"pipeline, {name}", **found, "verified": surge.verified})
    finally:
        spark.stop()
    ours = results[0]
    verified = sum(row["verified"] for row in results)
    return results, [
        at_least(f"pipeline: seconds within {TARGET_S:g} s", ours["within_target"], 0.95),
        at_most("pipeline: core-seconds over static peak's", ours["cost_vs_static"], 0.65),
        Aim(
            "pipeline: states that equal what was produced",
            verified,
            f"= {len(results)}",
            verified == len(results),
        ),
    ]


def _program(options: Options, seconds: float) -> tuple[list[dict[str, Any]], list[Aim]]:
    """Spark's program under `tidegate run`."""
    rate = float(options.extra.get("rate", 4000.0))
    cluster = Cluster(EXECUTORS, options.extra.get("target", f"{TARGET_S:g} seconds"))
    up, down = seconds / 3, seconds * 2 / 3
    steps = f"step:{rate:g}@0,{4 * rate:g}@{up:g},{rate:g}@{down:g}"
    load = TopicLoad.of(steps, f"uniform:{WORDS}", seconds, form="key")
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as scratch, Broker() as broker:
        create_topic(broker.servers, "words", partitions=EXECUTORS)
        options.progress.doing(f"program: starting {PROGRAM.name} on {EXECUTORS} executors")
        with RunningWordCount(Path(scratch), cluster, broker.servers, "words") as program:
            if not program.wait(lambda: program.reads, _PATIENCE_S, "its first micro-batch"):
                raise TidegateError(f"the program read nothing within {_PATIENCE_S:.0f} s")
            # A local-cluster starts all its executors, and an idle program needs one.
            program.wait(lambda: program.executors() == 1, _PATIENCE_S, "an executor was released")
            options.progress.expect(1.0, takes_s=seconds)
            options.progress.step(
                f"program: {seconds:.0f} s of load, {rate:,.0f} records/s and four times that"
            )
            with ProducerProcess(broker.servers, "words", load) as producer:
                begun_s = producer.begin() / 1000
                done = producer.wait()
            program.wait(
                lambda: program.counts() == done.per_key, _PATIENCE_S, "all records were counted"
            )
            failed = int(not program.runs)
            program.end()
            counts, records = program.counts(), program.records()
    return _told(records, counts, done, (begun_s, up, down), seconds, failed)


def _told(
    records: list[Record],
    counts: dict[int, int],
    done: Produced,
    times: tuple[float, float, float],
    seconds: float,
    failed: int,
) -> tuple[list[dict[str, Any]], list[Aim]]:
    begun_s, up, down = times
    granted = [
        (record.measurement.at_s - begun_s, record.measurement.cores_granted) for record in records
    ]
    before = min((n for at_s, n in granted if 0 <= at_s <= up), default=0)
    most = max((n for at_s, n in granted if up <= at_s <= down + seconds / 6), default=0)
    last = granted[-1][1] if granted else 0
    under_load = [r for r in records if begun_s <= r.measurement.at_s <= begun_s + seconds]
    batches = sum(len(part.batches) for r in records for part in r.measurement.segments)
    row = {
        "body": "program, tidegate run",
        **_judged(under_load, seconds, EXECUTORS),
        "executors": f"{before}, {most}, {last}",
        "batches": batches,
        "verified": counts == done.per_key,
    }
    return [row], [
        Aim("program: executors out in the surge", most, f"> {before}", most > before),
        Aim("program: executors in after it", last, f"< {most}", last < most),
        Aim("program: failed batches", failed, "= 0", failed == 0),
        Aim("program: records counted", sum(counts.values()), f"= {done.rows:,}",
            counts == done.per_key),
    ]  # fmt: skip


def _judged(records: list[Record], seconds: float, static_cores: int) -> dict[str, Any]:
    warm_s = min(WARM_S, seconds / 3)
    found = summarise(records, warm_up_s=warm_s, static_cores=static_cores).document()
    names = ("within_target", "p95_ms", "core_seconds", "static_core_seconds", "cost_vs_static")
    return {name: found[name] for name in (*names, "changes")}
