"""Generates examples to learn from: features, and a label that a hidden model gives them.

One label in twenty is wrong, so no model is right about all of them. An example is a pure function
of its number and the seed. All numbers are multiples of powers of two, and sums of their products
are exact, in whatever order they are added up.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.apps.learning.options import BYTES, PARTS, LearningOptions
from tidegate.workload.counter import uniforms, words

SCHEMA = "part long, item long, label long, values array<double>"
"""An example, or a model on its way to a part. `item` is the number of an example, or less than 0
for a model (`model_item`). `values` are the features of the one and the weights of the other."""
WRONG = 0.05
"""The share of wrong labels."""
_FEATURES, _LABEL, _HIDDEN = 81, 82, 83
"""Streams of random numbers."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def features(numbers: Ints, options: LearningOptions, seed: int) -> Floats:
    """The features of the examples with these numbers: from -2 to 2, in steps of 1/64."""
    width = options.features // BYTES
    places = numbers[:, None] * width + np.arange(width, dtype=np.int64)
    drawn = words(places, seed, _FEATURES).view(np.uint8).reshape(len(numbers), options.features)
    return (drawn.astype(np.float64) - 128.0) / 64.0


def labels(numbers: Ints, found: Floats, seed: int) -> Ints:
    """The labels, 0 or 1, of examples with these features."""
    side = found @ hidden_weights(found.shape[1], seed) > 0.0
    wrong = uniforms(words(numbers, seed, _LABEL)) < WRONG
    return (side ^ wrong).astype(np.int64)


def hidden_weights(count: int, seed: int) -> Floats:
    """The weights that the model should find, but for a factor: -1 to 1, in steps of 1/1024."""
    drawn = words(np.arange(count, dtype=np.int64), seed, _HIDDEN) >> np.uint64(53)
    return (drawn.astype(np.float64) - 1024.0) / 1024.0


def value_lists(values: Floats) -> pa.Array:
    """A matrix as a column with a list for each of its rows."""
    offsets = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.ravel()))


def value_matrix(column: pa.ChunkedArray, width: int) -> Floats:
    """A column of lists, all of the same length, as a matrix."""
    found: Floats = column.combine_chunks().flatten().to_numpy().reshape(-1, width)
    return found


def example_map(options: LearningOptions, seed: int) -> Callable[[pa.Table], pa.Table]:
    """The first step of the pipeline: row numbers become examples."""

    def make(rows: pa.Table) -> pa.Table:
        seq = rows["seq"].to_numpy()
        found = features(seq, options, seed)
        return pa.table(
            {
                "part": seq % PARTS,
                "item": seq,
                "label": labels(seq, found, seed),
                "values": value_lists(found),
            }
        )

    return make
