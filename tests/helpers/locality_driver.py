"""A pipeline on two real executors with separate caches; reports where shards were read from.

    python locality_driver.py ROOT

Prints one JSON document. It needs its own process, because a process has only one Spark.
"""

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa

import tidegate as tg
from tests.helpers.feed import Feed
from tidegate.spark.measure.pipeline_meter import PipelineMeter

EXECUTORS, SHARDS, CALM = 2, 64, 3


def main(root: Path) -> None:
    spark = tg.session(f"local-cluster[{EXECUTORS},1,1024]", "locality")
    feed = Feed(root / "in", "k long")
    flow = tg.pipeline("local", feed.stream(spark)).keyed("n", tg.count(), key="k", shards=SHARDS)
    run = flow.start(str(root / "ck"), tasks=EXECUTORS, cache="tidegate-cache")

    meter = PipelineMeter(
        run,
        SimpleNamespace(
            granted=lambda: EXECUTORS, asked=EXECUTORS, grant_s=None, overdue=lambda: None
        ),
    )

    def phase(batches: int) -> dict[str, int]:
        before = len(run.results())
        for _ in range(batches):
            keys = np.random.default_rng(len(feed.batches)).integers(0, 2000, 2000)
            feed.add(pa.table({"k": keys}))
            run.processAllAvailable()
        reports = [report for result in run.results()[before:] for report in result.of("n")]
        return {
            "own": sum(report.own_reads for report in reports),
            "durable": sum(report.durable_reads for report in reports),
            "bytes": sum(report.durable_bytes for report in reports),
            "nodes": len({report.node for report in reports}),
            "places": len({report.executor for report in reports}),
        }

    phase(1)
    told: dict[str, object] = {"calm": phase(CALM)}
    old = run.allocation()["n"].route
    run.rescale("n", EXECUTORS + 1)
    new = run.allocation()["n"].route
    told["moved"] = sum(a != b for a, b in zip(old, new, strict=True))
    told["rescaled"] = phase(1)
    told["calm again"] = phase(CALM)
    (operator,) = meter.measure(time.time()).operators
    nodes, route = operator.nodes, operator.route
    told["tasks on nodes"] = len(nodes)
    told["fetched"] = operator.durable_bytes
    shared = next(node for node in nodes if nodes.count(node) > 1)
    here, beside = (task for task, node in enumerate(nodes) if node == shared)
    (away,) = (task for task, node in enumerate(nodes) if node != shared)
    run.reroute("n", {route.index(here): beside})
    told["moved beside"] = phase(1)
    run.reroute("n", {route.index(beside): away})
    told["moved away"] = phase(1)
    told["counted"] = sum(tg.read_state(str(root / "ck"), "n")["count"].to_pylist())
    told["rows"] = feed.all().num_rows
    run.stop()
    spark.stop()
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
