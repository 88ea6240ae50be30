"""The age of a checkpoint: what a start, a micro-batch and a listing take after many batches.

Between two measurements, batches are passed over: their plans, manifests, cleaning and records are
real, and their tasks report that nothing has changed. So the directory is what the same number of
real batches leaves, in a hundredth of the time.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from benchmarks.growth_bodies.imitated import ImitatedPipeline, Shape, Spent

SHAPE = Shape(tasks=2, shards=256, keys=1_000, rows=200)
WARM, BATCHES, STARTS = 16, 24, 5
TICK_EVERY = 6
"""One tick for so many batches that are passed over: one a minute."""
_NOBODY = np.empty(0, dtype=np.int64)


def ages(
    root: Path, decades: list[int], say: Callable[[str], None] = print
) -> Iterator[tuple[float, dict[str, float]]]:
    """For each age in batches, the seconds of its parts."""
    pipeline = ImitatedPipeline(root, SHAPE)
    for age in decades:
        while pipeline.next_batch < age - WARM - BATCHES:
            pipeline.batch(_NOBODY, tick=pipeline.next_batch % TICK_EVERY == 0)
        for _ in range(WARM):
            pipeline.batch()
        spent = [pipeline.batch() for _ in range(BATCHES)]
        started_s = [_start_s(root, pipeline.next_batch) for _ in range(STARTS)]
        # The last start owns the checkpoint now, and goes on with what the controller knows.
        controller = pipeline.controller
        pipeline = ImitatedPipeline(root, SHAPE, first_batch=pipeline.next_batch)
        pipeline.controller = controller
        found = {
            "start": statistics.median(started_s),
            "commit": statistics.median(map(_commit_s, spent)),
            "tick": statistics.median(one.loop_s for one in spent),
            "task": statistics.median(one.task_s for one in spent),
            "list": _list_s(pipeline),
        }
        say(f"{age:,} batches: {files_of(root)} files in the checkpoint")
        yield float(age), found


def files_of(root: Path) -> int:
    """How many files the checkpoint has."""
    return sum(1 for path in (root / "checkpoint").rglob("*") if path.is_file())


def _commit_s(spent: Spent) -> float:
    return spent.plan_s + spent.pack_s + spent.commit_s + spent.clean_s


def _start_s(root: Path, next_batch: int) -> float:
    """What a new driver does with the checkpoint before its first batch."""
    begun_s = time.process_time()
    ImitatedPipeline(root, SHAPE, first_batch=next_batch)
    return time.process_time() - begun_s


def _list_s(pipeline: ImitatedPipeline) -> float:
    """List everything that a start, a replay or a reader lists."""
    transactions = pipeline.transactions
    taken = []
    for _ in range(20):
        begun_s = time.process_time()
        transactions.manifests.committed()
        transactions.plans.newest()
        transactions.lease.epochs.newest()
        for operator in pipeline.segment.keyed:
            pipeline.checkpoint.state(operator.name).sizes()
        taken.append(time.process_time() - begun_s)
    return statistics.median(taken)
