"""Generated instances: uniform attributes, and labels by a random tree, some of them wrong.

An instance is a pure function of its number and the seed. The concept is known, so one knows how
good a learner can become: it is right about all labels but the wrong ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from tidegate.apps.vht.messages import instance_rows
from tidegate.apps.vht.options import VhtOptions
from tidegate.apps.vht.packed import BITS, CLASSES, LEVELS, Ints, level_of
from tidegate.workload.counter import uniforms, words

_LEVELS, _WRONG, _ATTRIBUTE, _CUT, _LABEL = range(71, 76)
"""The streams of random numbers of this file."""
_FIRST_CUT = 5
"""No node of the concept cuts off fewer levels than this, so that no branch is rare."""


@dataclass(frozen=True, slots=True)
class Instances:
    """The stream of instances."""

    options: VhtOptions
    seed: int

    def levels(self, seq: Ints) -> Ints:
        """The packed attributes of each instance."""
        used = (1 << (BITS * self.options.attributes)) - 1
        return (words(seq, self.seed, _LEVELS) & np.uint64(used)).view(np.int64)

    def labels(self, seq: Ints) -> Ints:
        """The label of each instance."""
        wrong = uniforms(words(seq, self.seed, _WRONG)) < self.options.noise
        return (self.concept(self.levels(seq)) + wrong) % CLASSES

    def concept(self, levels: Ints) -> Ints:
        """The right label of each instance: a way down a random tree."""
        attributes, cuts, labels = _concept(self.options, self.seed)
        node = np.zeros(len(levels), dtype=np.int64)
        for _ in range(self.options.depth):
            node = 2 * node + 1 + (level_of(levels, attributes[node]) >= cuts[node])
        return labels[node - (len(labels) - 1)]


@lru_cache(maxsize=8)
def _concept(options: VhtOptions, seed: int) -> tuple[Ints, Ints, Ints]:
    """Attributes and cuts of the inner nodes, level by level, and the labels of the leaves.

    The two leaves of a node have different labels, so that no cut is in vain.
    """
    inner = np.arange((1 << options.depth) - 1)
    attributes = words(inner, seed, _ATTRIBUTE) % np.uint64(options.attributes)
    span = LEVELS + 1 - 2 * _FIRST_CUT
    cuts = _FIRST_CUT + (words(inner, seed, _CUT) % np.uint64(span)).astype(np.int64)
    leaves = np.arange(1 << options.depth)
    first = (words(leaves // 2, seed, _LABEL) % np.uint64(CLASSES)).astype(np.int64)
    return attributes.astype(np.int64), cuts, (first + leaves) % CLASSES


def instance_map(instances: Instances) -> Callable[[pa.Table], pa.Table]:
    """The first step of the pipeline: row numbers become messages with instances."""

    def instance(rows: pa.Table) -> pa.Table:
        seq = rows["seq"].to_numpy()
        return instance_rows(seq, instances.levels(seq), instances.labels(seq))

    return instance
