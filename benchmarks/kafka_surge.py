"""Load 1x, 4x, 1x from a Kafka broker on a cluster: a pipeline of ours, and a program of Spark's.

Both run on `local-cluster`, so that cores are executors that have to be started and released. Our
pipeline is the demo's, whose operators sleep, so that executors help on a machine with few cores.
`static peak` has the cores that the micro-batch model gives for the highest load. The program is
`structured_kafka_wordcount.py` as Spark ships it; Tidegate is attached to it. Its counts are those
of the last table that it prints.

Options: `--seconds 300`, `--only pipeline|program`, `--cluster 5x2` (executors of the pipeline and
the cores of each), `--rate 4000` (records per second of the program before and after the surge),
`--target '6 seconds'` (of the program).
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.kafka_bodies import wordcount

from tidegate.apps.surge import WARM_S, peak_cores, run_surge
from tidegate.benching import Aim, Bench, Options, at_least, at_most
from tidegate.control.record import Record
from tidegate.errors import TidegateError
from tidegate.recording import read_records
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
_TABLE = re.compile(r"^\|\s*(\S+)\s*\|\s*(\d+)\s*\|$", re.MULTILINE)


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
    options.say(f"starting a broker and {executors} executors of {cores_each} cores")
    master = f"local-cluster[{executors},{cores_each},1024]"
    spark = session(master, "bench-kafka-surge", kafka=True)
    try:
        for name, policy, cores in contenders:
            options.say(f"{name}: {seconds:.0f} s of load")
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
    """Spark's program with Tidegate attached."""
    rate = float(options.extra.get("rate", 4000.0))
    target = options.extra.get("target", f"{TARGET_S:g} seconds")
    up, down = seconds / 3, seconds * 2 / 3
    steps = f"step:{rate:g}@0,{4 * rate:g}@{up:g},{rate:g}@{down:g}"
    load = TopicLoad.of(steps, f"uniform:{WORDS}", seconds, form="key")
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as scratch, Broker() as broker:
        root = Path(scratch)
        create_topic(broker.servers, "words", partitions=EXECUTORS)
        options.say(f"program: starting {wordcount.PROGRAM.name} on {EXECUTORS} executors")
        child = _start(root, broker.servers, target)
        try:
            _await(root / "ready", child, root)
            options.say(
                f"program: {seconds:.0f} s of load, {rate:,.0f} records/s and four times that"
            )
            with ProducerProcess(broker.servers, "words", load) as producer:
                begun_s = producer.begin() / 1000
                done = producer.wait()
            (root / "produced").write_text(str(done.rows))
            _await(root / "report.json", child, root)
        finally:
            child.kill()
            child.wait()
        counts = _printed(root / "spark.log")
        records = list(read_records(root / "records"))
        report = json.loads((root / "report.json").read_text())
    return _told(report, records, counts, done, (begun_s, up, down), seconds)


def _start(root: Path, servers: str, target: str) -> "subprocess.Popen[bytes]":
    arguments = [str(root), servers, "words", target, str(EXECUTORS)]
    with (root / "child.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.kafka_bodies.wordcount", *arguments],
            stdout=log,
            stderr=log,
            cwd=Path(__file__).resolve().parents[1],
            env=os.environ | {"TIDEGATE_SPARK_LOG": str(root / "spark.log")},
        )


def _await(file: Path, child: "subprocess.Popen[bytes]", root: Path) -> None:
    until_s = time.monotonic() + _PATIENCE_S
    while not file.exists():
        if child.poll() is not None or time.monotonic() > until_s:
            last = (root / "child.log").read_text(errors="replace")[-1500:]
            raise TidegateError(f"the program came to no '{file.name}':\n{last}")
        time.sleep(0.1)


def _printed(log: Path) -> dict[int, int]:
    """The counts of the last table that the program printed."""
    table = log.read_text(errors="replace").rpartition("\nBatch: ")[2]
    return {int(word): int(count) for word, count in _TABLE.findall(table) if word != "word"}


def _told(
    report: dict[str, Any],
    records: list[Record],
    counts: dict[int, int],
    done: Produced,
    times: tuple[float, float, float],
    seconds: float,
) -> tuple[list[dict[str, Any]], list[Aim]]:
    begun_s, up, down = times
    granted = [
        (record.measurement.at_s - begun_s, record.measurement.cores_granted) for record in records
    ]
    before = min((n for at_s, n in granted if 0 <= at_s <= up), default=0)
    most = max((n for at_s, n in granted if up <= at_s <= down + seconds / 6), default=0)
    last = granted[-1][1] if granted else 0
    under_load = [r for r in records if begun_s <= r.measurement.at_s <= begun_s + seconds]
    row = {
        "body": "program, attached",
        **_judged(under_load, seconds, EXECUTORS),
        "executors": f"{before}, {most}, {last}",
        "batches": report["batches"],
        "verified": counts == done.per_key,
    }
    failed = int(report["error"] is not None)
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
