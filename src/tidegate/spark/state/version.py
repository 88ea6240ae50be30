"""A version: the files that make up an operator's state after a committed micro-batch.

Each shard has a *chain* of files, oldest first. A key's row in a newer file hides its row in an
older one. Versions are immutable: committing a batch makes a new one from its tasks' reports.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegate.spark.state.chains import Chains, Shards
from tidegate.spark.state.event_times import (
    ALL,
    IDLE_US,
    EventTimes,
    advanced,
    from_json,
    to_json,
    watermark_us,
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive whole shards in a file, stored as one record batch."""

    first_shard: int
    last_shard: int
    rows: int
    due_from_us: int | None = None
    """The earliest due time of its rows, and below the latest; None if they were not recorded."""
    due_to_us: int | None = None
    offset: int | None = None
    """Where its bytes begin in the file, and below how many they are and their CRC-32; None in
    files of earlier versions of Tidegate, which have one checksum for the whole file."""
    length: int | None = None
    checksum: int | None = None

    def may_be_due(self, after_us: int | None, until_us: int) -> bool:
        """Whether a row in it may be due after the first time and up to the second."""
        if self.due_from_us is None or self.due_to_us is None:
            return True
        return self.due_from_us <= until_us and (after_us is None or self.due_to_us > after_us)

    def to_json(self) -> list[int | None]:
        """The form in the manifest; what was not recorded is null, and left out at the end."""
        found: list[int | None] = [
            self.first_shard,
            self.last_shard,
            self.rows,
            self.due_from_us,
            self.due_to_us,
            self.offset,
            self.length,
            self.checksum,
        ]
        while found[-1] is None:
            found.pop()
        return found


@dataclass(frozen=True, slots=True, weakref_slot=True)
class StateFile:
    """A file with the changes of one task in one micro-batch, and the shards that it merged."""

    name: str
    size_bytes: int
    pieces: tuple[Piece, ...]
    checksum: int | None = None
    """CRC-32 of the whole file, if an earlier version of Tidegate wrote it; else each piece has its
    own."""

    @property
    def batch_id(self) -> int:
        """The micro-batch that wrote it."""
        return int(self.name[:10])

    @property
    def layout(self) -> int:
        """The number of the layout that it was written in: `-l2-` in its name, or 0."""
        parts = self.name.split("-")
        return int(parts[2][1:]) if len(parts) == 4 and parts[2].startswith("l") else 0


@dataclass(frozen=True, slots=True, eq=False)
class TaskChange:
    """The change that a task made to the state of its shards."""

    file: StateFile
    shards: Shards
    """The shards in the file, each once. No two tasks of a batch have a shard in common."""
    kept: Shards
    """For each of them, how many of the oldest files of its chain stay before it: all of them for a
    delta, none for a snapshot."""


@dataclass(frozen=True, slots=True)
class Version:
    """The state of one operator after one micro-batch."""

    shards: int
    files: tuple[StateFile, ...] = ()
    """Oldest first."""
    chains: Chains = field(default_factory=lambda: Chains.none(0))
    """For each shard, the numbers of its files in `files`, oldest first."""
    event_times: EventTimes = field(default_factory=dict)
    """How far each source has come, which determines the next batch's watermark."""
    handed_us: int | None = None
    """The watermark of the batch that made this version. State rows due by then were passed to the
    function in that batch."""
    at_us: int | None = None
    """The clock of the batch that made this version; None before the first one."""
    holders: NDArray[np.int64] | None = field(default=None, compare=False, repr=False)
    """For each file, how many shards of the operator have it in their chains; None where it is not
    told, because `chains` has all of them."""

    @classmethod
    def empty(cls, shards: int) -> "Version":
        """The version before the first micro-batch."""
        return cls(shards, (), Chains.none(shards))

    @property
    def names(self) -> set[str]:
        """The names of all files that this version needs."""
        return {file.name for file in self.files}

    def watermark_us(self, delay_us: int) -> int | None:
        """The watermark of the next batch; None before the first event."""
        return watermark_us(self.event_times, delay_us, self.handed_us)

    def holders_of_files(self) -> NDArray[np.int64]:
        """For each file, how many shards of the operator have it in their chains."""
        return self.chains.holders(len(self.files)) if self.holders is None else self.holders

    @property
    def newest_event_us(self) -> int | None:
        """The newest event of any source."""
        return max(
            (time.newest_us for time in self.event_times.values() if time.newest_us is not None),
            default=None,
        )

    def after(
        self,
        changes: Iterable[TaskChange],
        newest_us: Mapping[str, int],
        delay_us: int,
        *,
        sources: Collection[str] = (ALL,),
        at_us: int = 0,
        idle_after_us: int = IDLE_US,
    ) -> "Version":
        """The next version, with these changes; files that no chain needs are left out.

        `newest_us` has the newest event of each of the `sources` that delivered one in the batch,
        and `at_us` is the batch's clock. A source that delivers nothing for `idle_after_us` no
        longer holds back the watermark.
        """
        ordered = sorted(changes, key=lambda change: change.file.name)
        files = [*self.files, *(change.file for change in ordered)]
        chains = self.chains
        if ordered:
            chains = chains.changed(
                np.concatenate([change.shards for change in ordered]),
                np.concatenate([change.kept for change in ordered]),
                np.repeat(
                    np.arange(len(self.files), len(files), dtype=np.int32),
                    [len(change.shards) for change in ordered],
                ),
            )
        used = chains.used(len(files))
        passed_us = 0 if self.at_us is None else at_us - self.at_us
        return Version(
            self.shards,
            tuple(compress(files, used.tolist())),
            chains.renumbered(used),
            advanced(self.event_times, sources, newest_us, passed_us, idle_after_us),
            self.watermark_us(delay_us),
            at_us,
        )

    def to_json(self) -> dict[str, Any]:
        """The form in the manifest, for `columns.dumps`."""
        return {
            "shards": self.shards,
            "newest_event_us": self.newest_event_us,
            "event_times": to_json(self.event_times),
            "handed_us": self.handed_us,
            "at_us": self.at_us,
            "files": [
                [
                    f.name,
                    f.size_bytes,
                    [piece.to_json() for piece in f.pieces],
                    f.checksum,
                ]
                for f in self.files
            ],
            "chains": self.chains,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Version":
        """The reverse of `to_json`."""
        return cls(
            document["shards"],
            tuple(
                StateFile(name, size, tuple(Piece(*piece) for piece in pieces), checksum)
                for name, size, pieces, checksum in document["files"]
            ),
            Chains.of(document["chains"]),
            from_json(document),
            document.get("handed_us"),
            document.get("at_us"),
        )
