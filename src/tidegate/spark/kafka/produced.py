"""What a producer sent and the broker acknowledged, per key, so that results can be compared."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_BLOCKS = 256
"""So many blocks are kept before they are added up."""


@dataclass(frozen=True, eq=False)
class Produced:
    """The records of one producer."""

    rows: int
    """Records that the broker acknowledged."""
    failed: int
    """Records that it did not acknowledge in time; they may be in the topic or not."""
    keys: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    """Acknowledged records of each of `keys`."""
    start_ms: int
    """When the profile began, in milliseconds since the epoch."""
    behind_s: float
    """The longest time that the producer itself was behind the profile."""

    @property
    def per_key(self) -> dict[int, int]:
        """Acknowledged records by key."""
        return dict(zip(self.keys.tolist(), self.counts.tolist(), strict=True))

    def document(self) -> dict[str, Any]:
        """What JSON can hold; `of_document` reads it."""
        return vars(self) | {"keys": self.keys.tolist(), "counts": self.counts.tolist()}

    @staticmethod
    def of_document(document: Mapping[str, Any]) -> "Produced":
        """What `document` gave."""
        columns = {name: np.array(document[name], np.int64) for name in ("keys", "counts")}
        return Produced(**{**document, **columns})


class KeyTally:
    """Counts records by key, a block at a time."""

    def __init__(self) -> None:
        self._keys: list[npt.NDArray[np.int64]] = []
        self._counts: list[npt.NDArray[np.int64]] = []

    def add(self, keys: npt.NDArray[np.int64], counts: npt.NDArray[np.int64] | None = None) -> None:
        """Count one record for each of these keys, or as many as `counts` says."""
        if counts is None:
            keys, counts = np.unique(keys, return_counts=True)
        self._keys.append(keys)
        self._counts.append(counts)
        if len(self._keys) > _BLOCKS:
            self._keys, self._counts = ([part] for part in self.totals())

    def totals(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The keys that have records, in order, and how many each has."""
        if not self._keys:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        keys, where = np.unique(np.concatenate(self._keys), return_inverse=True)
        counts = np.zeros(len(keys), np.int64)
        np.add.at(counts, where, np.concatenate(self._counts))
        return keys[counts != 0], counts[counts != 0]
