"""Starts Python workers before they are needed.

A rescale to more tasks needs one Python worker per task at once. Each new worker costs a tenth of a
second of CPU time or more before it does any work, which was the longest part of a rescale. So when
a pipeline has started without a warm-up, a small job starts one worker per core, in parallel with
the first batches and once per Spark application. Spark keeps idle workers as long as it uses any
worker.
"""

import logging
import threading
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
from pyspark.sql import SparkSession

log = logging.getLogger("tidegate")

_TOGETHER_S = 0.4
"""Each task of the job holds its worker this long, so that the next task gets another worker."""
_begun: set[str] = set()


def hold_worker() -> None:
    """Hold a worker, and meanwhile run the Arrow and numpy code that every task needs first."""
    until_s = time.monotonic() + _TOGETHER_S
    table = pa.table({"k": ["a", "b"], "v": [2, 1]})
    order = compute.sort_indices(table, sort_keys=[("v", "ascending"), ("k", "ascending")])
    table.take(order).filter(compute.equal(table["v"], 1)).combine_chunks()
    np.argsort(np.arange(4), kind="stable")
    time.sleep(max(0.0, until_s - time.monotonic()))


def _held(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    hold_worker()
    yield from blocks


def are_started(session: SparkSession) -> None:
    """Note that the workers of this application have been started by other means."""
    _begun.add(str(session.sparkContext.applicationId))


def start_workers(session: SparkSession) -> threading.Thread | None:
    """Start one worker per core in a thread, and return the thread.

    Returns None if this application has its workers already, or if it runs on a cluster.
    """
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
    """Run the job. If it fails, workers start when they are needed, so nobody has to be told.

    It fails for instance because the process ends meanwhile, and then prints nothing.
    """
    try:
        context = session.sparkContext
        context.setJobGroup("tidegate-workers", "start Python workers")
        held = session.range(0, count, 1, count).mapInArrow(lambda blocks: _held(blocks), "id long")
        held.write.format("noop").mode("append").save()
    except Exception:
        log.debug("Python workers were not started ahead of their first use", exc_info=True)
