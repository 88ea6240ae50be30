"""The chains of files of all shards, as two columns.

Every micro-batch makes new chains of many shards, and a driver and its tasks look at all of them.
So nothing is done shard by shard.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegate.columns import lists_text

Numbers = NDArray[np.int32]
Shards = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """For each shard, the numbers of its files, oldest first."""

    numbers: Numbers
    """Those of all chains, one chain after the other."""
    lengths: Numbers
    """The length of each chain."""

    @classmethod
    def none(cls, shards: int) -> "Chains":
        """No shard has a file."""
        return cls(np.empty(0, np.int32), np.zeros(shards, np.int32))

    @classmethod
    def of(cls, chains: Iterable[Sequence[int]]) -> "Chains":
        """The chains of the shards, in their order."""
        found = list(chains)
        lengths = np.fromiter(map(len, found), np.int32, len(found))
        numbers = (number for chain in found for number in chain)
        return cls(np.fromiter(numbers, np.int32, int(lengths.sum())), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, shard: int) -> tuple[int, ...]:
        begin = int(self.lengths[:shard].sum())
        return tuple(self.numbers[begin : begin + int(self.lengths[shard])].tolist())

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        numbers, begin = self.numbers.tolist(), 0
        for length in self.lengths.tolist():
            yield tuple(numbers[begin : begin + length])
            begin += length

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Chains)
            and np.array_equal(self.lengths, other.lengths)
            and np.array_equal(self.numbers, other.numbers)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def ends(self) -> Shards:
        """Where each chain ends in `numbers`."""
        return np.cumsum(self.lengths, dtype=np.int64)

    def owners(self) -> Shards:
        """The shard of each entry of `numbers`."""
        shards = np.flatnonzero(self.lengths)
        return np.repeat(shards, self.lengths[shards])

    def of_shards(self, mine: NDArray[np.bool_]) -> "Chains":
        """The chains of these shards; those of all others are empty."""
        shards = np.flatnonzero(mine)
        ends, lengths = self.ends[shards], np.zeros_like(self.lengths)
        lengths[shards] = self.lengths[shards]
        return Chains(self.numbers[ranges(ends - lengths[shards], ends)], lengths)

    def changed(self, shards: Shards, kept: Shards, files: Numbers) -> "Chains":
        """The chains with one more file for each of these shards, which are all different.

        `kept` says how many of the oldest files of its chain stay before it, and `files` has the
        numbers of the new files.
        """
        before, ends = self.lengths[shards], self.ends[shards]
        held = np.minimum(kept, before)
        lengths = self.lengths.copy()
        lengths[shards] = held + 1
        stays = np.ones(len(self.numbers), np.bool_)
        stays[ranges(ends - before + held, ends)] = False
        last = np.cumsum(lengths, dtype=np.int64)[shards] - 1
        numbers = np.empty(int(lengths.sum()), np.int32)
        older = np.ones(len(numbers), np.bool_)
        older[last] = False
        numbers[older] = self.numbers[stays]
        numbers[last] = files
        return Chains(numbers, lengths)

    def holders(self, files: int) -> NDArray[np.int64]:
        """In how many chains each of so many files is."""
        return np.bincount(self.numbers, minlength=files)

    def used(self, files: int) -> NDArray[np.bool_]:
        """Which of so many files are in a chain."""
        found = np.zeros(files, np.bool_)
        found[self.numbers] = True
        return found

    def renumbered(self, used: NDArray[np.bool_]) -> "Chains":
        """The chains when only the used files are left, in their order."""
        if used.all():
            return self
        number_of = np.cumsum(used, dtype=np.int32) - np.int32(1)
        return Chains(number_of[self.numbers], self.lengths)

    @property
    def json_text(self) -> str:
        """The lists of the manifest, one for each shard."""
        return lists_text(self.numbers, self.lengths)


def ranges(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """All numbers in all ranges [start, end)."""
    counts = ends - starts
    total = int(counts.sum())
    offsets = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    rows: NDArray[np.int64] = np.repeat(starts, counts) + offsets
    return rows
