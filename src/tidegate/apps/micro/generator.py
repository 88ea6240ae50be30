"""The generator: a tuple is a key and a payload of 128 bytes, made from the row's number alone."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.apps.micro.options import WORD, MicroOptions
from tidegate.workload.counter import words

SCHEMA = "key long, seq long, value double, payload binary"
TUPLES, STATE = 11, 12
"""Streams of random numbers; the source's own have lower numbers."""
Words = npt.NDArray[np.uint64]


def payload_words(numbers: npt.NDArray[np.int64], seed: int, size: int, stream: int) -> Words:
    """The payload of each number as a row of 64-bit words: random, so that nothing compresses."""
    width = size // WORD
    places = numbers[:, None] * width + np.arange(width, dtype=np.int64)
    return words(places, seed, stream)


def binary_column(content: Words) -> pa.Array:
    """A row of words as one binary value, without a copy of the content."""
    count, width = content.shape
    offsets = np.arange(count + 1, dtype=np.int64) * (width * WORD)
    parts = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(), count, parts)


def words_of(column: pa.ChunkedArray, size: int) -> Words:
    """The binary values of a column, which all have `size` bytes, as rows of words."""
    parts = [_words(chunk, size) for chunk in column.chunks if len(chunk)]
    if not parts:
        return np.empty((0, size // WORD), dtype=np.uint64)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _words(chunk: pa.Array, size: int) -> Words:
    _, offsets, content = chunk.buffers()
    begin = int(np.frombuffer(offsets, np.int32, 1, 4 * chunk.offset)[0])
    count = len(chunk) * (size // WORD)
    return np.frombuffer(content, np.uint64, count, begin).reshape(len(chunk), -1)


def first_keys(
    seq: npt.NDArray[np.int64], key: npt.NDArray[np.int64], options: MicroOptions
) -> npt.NDArray[np.int64]:
    """The tuples' keys: as the source drew them, or with `fill` every key once before that."""
    return np.where(seq < options.keys, seq, key) if options.fill else key


def generator(options: MicroOptions, seed: int) -> Callable[[pa.Table], pa.Table]:
    """The map that turns rows of the source into tuples."""

    def generate(rows: pa.Table) -> pa.Table:
        seq = rows["seq"].to_numpy()
        content = payload_words(seq, seed, options.payload, TUPLES)
        return pa.table(
            {
                "key": first_keys(seq, rows["key"].to_numpy(), options),
                "seq": seq,
                "value": rows["value"],
                "payload": binary_column(content),
            }
        )

    return generate
