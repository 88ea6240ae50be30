"""Python workers before they are needed.

A rescale to more tasks needs as many Python workers at once, and a new one costs a tenth of a
second of CPU or more before it does anything: together the longest part of a rescale. So a small
job starts one for every core as a pipeline starts, once per Spark application and beside the first
batches. Spark keeps idle workers as long as it goes on using any.
"""

import threading
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
from pyspark.sql import SparkSession

_TOGETHER_S = 0.4
"""A worker that is held for so long is not used again for the next task of the same job."""
_begun: set[str] = set()


def _hold(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Keep a worker, and let it load what every task uses first."""
    until_s = time.monotonic() + _TOGETHER_S
    table = pa.table({"k": ["a", "b"], "v": [2, 1]})
    order = compute.sort_indices(table, sort_keys=[("v", "ascending"), ("k", "ascending")])
    table.take(order).filter(compute.equal(table["v"], 1)).combine_chunks()
    np.argsort(np.arange(4), kind="stable")
    time.sleep(max(0.0, until_s - time.monotonic()))
    yield from blocks


def start_workers(session: SparkSession) -> threading.Thread | None:
    """One worker per core of a master that is one process; None if that was done before."""
    context = session.sparkContext
    application = str(context.applicationId)
    if application in _begun or not context._jsc.sc().isLocal():
        return None
    _begun.add(application)
    thread = threading.Thread(
        target=_run,
        args=(session, context.defaultParallelism),
        name="tidegate-workers",
        daemon=True,
    )
    thread.start()
    return thread


def _run(session: SparkSession, count: int) -> None:
    context = session.sparkContext
    context.setJobGroup("tidegate-workers", "start Python workers")
    held = session.range(0, count, 1, count).mapInArrow(lambda blocks: _hold(blocks), "id long")
    try:
        held.write.format("noop").mode("append").save()
    except Exception:  # a job that ends because its Spark was stopped has not failed
        if not context._jsc.sc().isStopped():
            raise
