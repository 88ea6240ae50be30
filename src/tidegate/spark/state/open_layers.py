"""The layers that a worker process keeps open between micro-batches, bounded by their bytes.

A mapped layer occupies the page cache, which all processes of the node share, so much of it may
stay open. What lies on the process's own heap is bounded more tightly.
"""

from collections import OrderedDict
from collections.abc import Set as AbstractSet
from threading import Lock

from tidegate.spark.state.layer import Layer

MAPPED_BYTES = 4 << 30
"""Bytes of mapped pieces that a process keeps open."""
HEAP_BYTES = 256 << 20
"""Bytes on the heap that a process keeps for open pieces."""
_LOOK_EVERY = 16
"""A process looks for pieces whose files are no longer needed once in so many micro-batches."""

Mark = tuple[str, str, int]
"""The cache's directory, the file's name, and the number of the piece in the file."""


class OpenLayers:
    """Open layers, the least recently used ones closed first when there are too many bytes."""

    def __init__(self, mapped_bytes: int = MAPPED_BYTES, heap_bytes: int = HEAP_BYTES) -> None:
        self._limits = (mapped_bytes, heap_bytes)
        self._lock = Lock()
        self._open: OrderedDict[Mark, Layer] = OrderedDict()
        self._checked: set[Mark] = set()
        self._looked: dict[str, int] = {}
        self.mapped_bytes = 0
        self.heap_bytes = 0

    def get(self, mark: Mark) -> Layer | None:
        """An open layer, which now counts as the most recently used one."""
        with self._lock:
            found = self._open.get(mark)
            if found is not None:
                self._open.move_to_end(mark)
            return found

    def put(self, mark: Mark, layer: Layer) -> None:
        """Keep a layer open; others are closed if it is too much."""
        with self._lock:
            self._close(mark)
            self._open[mark] = layer
            self.mapped_bytes += layer.mapped_bytes
            self.heap_bytes += layer.heap_bytes
            most_mapped, most_heap = self._limits
            while len(self._open) > 1 and (
                self.mapped_bytes > most_mapped or self.heap_bytes > most_heap
            ):
                self._close(next(iter(self._open)))

    def was_checked(self, mark: Mark) -> bool:
        """Whether this process has compared the piece with its checksum before."""
        return mark in self._checked

    def note_checked(self, mark: Mark) -> None:
        """This process has compared the piece with its checksum, or has written it itself."""
        with self._lock:
            self._checked.add(mark)

    def is_time(self, directory: str, batch_id: int) -> bool:
        """Whether to look again for pieces of a directory that are no longer needed.

        A process that has not looked yet does so in certain batches: where batches are rare, Spark
        ends its Python workers between them, and no process sees many.
        """
        last = self._looked.get(directory)
        if last is None:
            self._looked[directory] = batch_id
            return batch_id % _LOOK_EVERY == 0
        if abs(batch_id - last) < _LOOK_EVERY:
            return False
        self._looked[directory] = batch_id
        return True

    def forget(self, directory: str, live: AbstractSet[str], before_batch: int) -> None:
        """Close the pieces of a directory's files of old batches that are not live."""

        def gone(mark: Mark) -> bool:
            folder, name, _ = mark
            return folder == directory and name not in live and int(name[:10]) < before_batch

        with self._lock:
            for mark in [mark for mark in self._open if gone(mark)]:
                self._close(mark)
            self._checked = {mark for mark in self._checked if not gone(mark)}

    def clear(self) -> None:
        """Close all, and check everything again."""
        with self._lock:
            for mark in list(self._open):
                self._close(mark)
            self._checked.clear()
            self._looked.clear()

    def __len__(self) -> int:
        return len(self._open)

    def _close(self, mark: Mark) -> None:
        layer = self._open.pop(mark, None)
        if layer is not None:
            self.mapped_bytes -= layer.mapped_bytes
            self.heap_bytes -= layer.heap_bytes
