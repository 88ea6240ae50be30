"""Pieces of state files in memory: sorted by slot, mapped and not copied.

A file holds one record batch per piece. A piece covers whole shards, so that a shard that moves to
another node is fetched without the rest of the file. A process keeps its mapped pieces, and all
tasks of the node share them through the page cache (Elasticutor 3.2: state sharing inside a node).
"""

import uuid
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidegate.errors import TidegateError
from tidegate.spark.state.files import Durable, missing
from tidegate.spark.state.layout import SLOT, Slots, shard_bounds

PIECE_ROWS = 1 << 16
"""A piece ends at the first shard boundary after this many rows."""
_KEEP_OPEN = 1024


@dataclass(frozen=True, slots=True)
class Layer:
    """One mapped piece of a state file."""

    table: pa.RecordBatch
    slots: Slots
    bounds: NDArray[np.int64]
    """The row at which each shard begins, and the end."""
    unique: bool
    """Whether all slots differ: a lookup then needs one search instead of two."""


def layer_of(table: pa.RecordBatch, shards: int) -> Layer:
    """A piece with the columns that every lookup needs."""
    slots = table.column(SLOT).to_numpy()
    unique = bool(np.all(slots[1:] != slots[:-1]))
    return Layer(table, slots, shard_bounds(slots, shards), unique)


def piece_ranges(bounds: NDArray[np.int64]) -> list[tuple[int, int, int, int]]:
    """Cut rows into pieces at shard boundaries: (first shard, last shard, first row, end row)."""
    pieces: list[tuple[int, int, int, int]] = []
    shards = len(bounds) - 1
    first = 0
    for shard in range(shards):
        full = bounds[shard + 1] - bounds[first] >= PIECE_ROWS
        if full or shard == shards - 1:
            if bounds[shard + 1] > bounds[first]:
                pieces.append((first, shard, int(bounds[first]), int(bounds[shard + 1])))
            first = shard + 1
    return pieces


_open_layers: "OrderedDict[tuple[str, int], Layer]" = OrderedDict()
_open_lock = Lock()


@dataclass(frozen=True, slots=True)
class NodeCache:
    """The node's local directory of state files, a cache of the durable ones."""

    directory: str
    durable: Durable
    shards: int

    def path(self, name: str) -> Path:
        """The path of a whole file in the cache."""
        return Path(self.directory) / name

    def make(self) -> None:
        """Create the directory."""
        Path(self.directory).mkdir(parents=True, exist_ok=True)

    def layer(self, name: str, piece: int) -> tuple[Layer, bool]:
        """A piece, and whether it was read on this node rather than from the durable files."""
        mark = (f"{self.directory}/{name}", piece)
        with _open_lock:
            found = _open_layers.get(mark)
            if found is not None:
                _open_layers.move_to_end(mark)
        if found is not None:
            return found, True
        whole, part = self.path(name), self.path(f"{name}.{piece}")
        table = self._cached(whole, piece)
        if table is None:
            table = self._cached(part, 0)
        own = table is not None
        if table is None:
            table = self._fetch(name, piece, part)
        layer = layer_of(table, self.shards)
        with _open_lock:
            _open_layers[mark] = layer
            while len(_open_layers) > _KEEP_OPEN:
                _open_layers.popitem(last=False)
        return layer, own

    def _cached(self, path: Path, piece: int) -> pa.RecordBatch | None:
        """A piece from the node; None if it is missing, or truncated because a disk was full."""
        try:
            return pa.ipc.open_file(pa.memory_map(str(path))).get_batch(piece)
        except (pa.ArrowInvalid, OSError):
            return None

    def _fetch(self, name: str, piece: int, part: Path) -> pa.RecordBatch:
        """Read one piece from the durable file, and cache it on the node for the next task."""
        try:
            with self.durable.open(name) as stream:
                table = pa.ipc.open_file(stream).get_batch(piece)
        except (pa.ArrowInvalid, OSError) as error:
            if not self.durable.exists(name):  # removed while it was read
                raise missing(self.durable.path(name)) from None
            raise _unreadable(self.durable.path(name), error) from None
        write_pieces(part, [table])
        return table

    def prune(self, live: set[str], before_batch: int) -> None:
        """Remove files of old batches, whole or partial, that no committed version needs."""
        for path in Path(self.directory).iterdir():
            name = path.name.removeprefix(".").split(".arrow")[0] + ".arrow"
            if name in live or not name[:10].isdigit() or int(name[:10]) >= before_batch:
                continue
            path.unlink(missing_ok=True)


def write_pieces(path: Path, pieces: list[pa.RecordBatch]) -> None:
    """Write record batches to an Arrow file that appears atomically."""
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    with pa.OSFile(str(aside), "wb") as stream, pa.ipc.new_file(stream, pieces[0].schema) as writer:
        for piece in pieces:
            writer.write_batch(piece)
    aside.replace(path)


def _unreadable(path: str, error: Exception) -> TidegateError:
    return TidegateError(
        f"the state file {path} cannot be read ({error}); nothing was overwritten; "
        "restore it from a copy of the checkpoint"
    )
