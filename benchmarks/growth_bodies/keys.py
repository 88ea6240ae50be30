"""The size of the state: a micro-batch that touches 1,000 keys of many.

The state is filled by the operator's own tasks, a million keys a batch, and then merges for a
while, as it would.
"""

import statistics
from pathlib import Path

import numpy as np
from benchmarks.growth_bodies.imitated import ImitatedPipeline, Shape, parts_of

FILL = 1_000_000
SETTLE, BATCHES = 24, 24


def touched(root: Path, keys: int) -> tuple[dict[str, float], int]:
    """The seconds of the parts of such a batch, and the bytes of the state."""
    pipeline = ImitatedPipeline(root, Shape(shards=256, keys=keys))
    for begin in range(0, keys, FILL):
        pipeline.batch(np.arange(begin, min(begin + FILL, keys)), tick=False)
    for _ in range(SETTLE):
        pipeline.batch()
    spent = [pipeline.batch() for _ in range(BATCHES)]
    operator = pipeline.segment.keyed[0].name
    size = sum(pipeline.checkpoint.state(operator).sizes().values())
    parts = parts_of(spent)
    # A merge comes now and then, so the mean tells more than the median.
    mean_s = statistics.mean(one.task_s for one in spent)
    return {"driver": parts["driver"], "task": parts["task"], "task, mean": mean_s}, size
