"""Generates the rows of a workload as columns; the same row numbers always give the same rows."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tidegate.workload.counter import words
from tidegate.workload.keys import Keys
from tidegate.workload.profile import Profile


@dataclass(frozen=True, slots=True)
class RowColumns:
    """A range of rows, column by column."""

    key: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    """Multiples of 1/1024 in [0, 1), so that sums are exact in any order and can be compared."""
    seq: npt.NDArray[np.int64]
    """The row's number in the whole stream."""
    arrival_us: npt.NDArray[np.int64]
    """Microseconds since the stream's start."""


def rows_between(profile: Profile, keys: Keys, seed: int, first: int, end: int) -> RowColumns:
    """The rows from number `first` up to, but not including, `end`."""
    seq = np.arange(first, end, dtype=np.int64)
    arrival_us = profile.arrival_us(seq)
    value = (words(seq, seed, stream=3) >> np.uint64(54)).astype(np.float64) / 1024.0
    return RowColumns(keys.at(seq, arrival_us, seed), value, seq, arrival_us)
