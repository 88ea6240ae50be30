"""A version as it travels to the tasks of an operator, which unpack their own files alone.

Every task of a micro-batch gets the same bytes. A version names several files for each task, so if
every task unpacked all of them, the work of all tasks together would grow with their square.
"""

import pickle
import weakref
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from tidegate.spark.state.chains import Chains, Shards
from tidegate.spark.state.event_times import EventTimes
from tidegate.spark.state.version import Piece, StateFile, Version

_remembered: dict[int, tuple[weakref.ref[StateFile], bytes]] = {}
"""The packed form of files, by their identity: a file stays in many versions. A file that no
version has any more is forgotten."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedVersion:
    """All of a version in a few blocks of bytes."""

    shards: int
    joined_names: str
    """The names of all files, one a line."""
    files: bytes
    """The files, packed one by one, one after the other."""
    ends: NDArray[np.int64]
    """Where each of them ends."""
    chains: Chains
    """Those of all shards."""
    event_times: EventTimes
    handed_us: int | None
    at_us: int | None

    @classmethod
    def of(cls, version: Version) -> "PackedVersion":
        """Pack a version."""
        packed = [_packed(file) for file in version.files]
        return cls(
            version.shards,
            "\n".join(file.name for file in version.files),
            b"".join(packed),
            np.fromiter(accumulate(map(len, packed)), np.int64, len(packed)),
            version.chains,
            version.event_times,
            version.handed_us,
            version.at_us,
        )

    @property
    def names(self) -> set[str]:
        """The names of all files that the version needs."""
        return set(self.joined_names.split("\n")) if self.joined_names else set()

    def only(self, shards: Shards) -> Version:
        """The version as a task sees it: the chains of its own shards, and the files in them.

        The chains of all other shards are empty.
        """
        mine = np.zeros(self.shards, dtype=np.bool_)
        mine[shards] = True
        own = self.chains.of_shards(mine)
        used = own.used(len(self.ends))
        return Version(
            self.shards,
            tuple(self._file(number) for number in np.flatnonzero(used).tolist()),
            own.renumbered(used),
            self.event_times,
            self.handed_us,
            self.at_us,
            self.chains.holders(len(self.ends))[used],
        )

    def _file(self, number: int) -> StateFile:
        begin = int(self.ends[number - 1]) if number else 0
        return _unpacked(self.files[begin : int(self.ends[number])])


@lru_cache(maxsize=4096)
def _unpacked(content: bytes) -> StateFile:
    """A file from its bytes; a process sees the same files again and again."""
    name, size, pieces, checksum = pickle.loads(content)
    return StateFile(name, size, tuple(Piece(*piece) for piece in pieces), checksum)


def _packed(file: StateFile) -> bytes:
    """A file as bytes, from memory if it was packed before."""
    mark = id(file)
    known = _remembered.get(mark)
    if known is not None and known[0]() is file:
        return known[1]
    pieces = [piece.to_json() for piece in file.pieces]
    content = pickle.dumps((file.name, file.size_bytes, pieces, file.checksum))
    _remembered[mark] = weakref.ref(file, lambda gone: _forget(mark, gone)), content
    return content


def _forget(mark: int, gone: "weakref.ref[StateFile]") -> None:
    """Forget a file, unless another one has been given its identity meanwhile."""
    known = _remembered.get(mark)
    if known is not None and known[0] is gone:
        del _remembered[mark]
