"""Copies files between a checkpoint and a savepoint, with their checksums."""

import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from tidegate.errors import TidegateError
from tidegate.spark.savepoint.contents import Item
from tidegate.spark.savepoint.index import Copied
from tidegate.spark.state.files import Durable, missing

_BLOCK = 4 << 20
_AT_ONCE = 4
Told = Callable[[int], None]
"""Told the bytes of each file that was copied."""


class Differs(TidegateError):
    """A file is not what it was, or what was noted of it."""


def copy_all(
    source: Durable, target: Durable, items: Iterable[Item], told: Told = lambda size: None
) -> list[Copied]:
    """Copy the files, several at a time, and return their sizes and checksums."""
    items = list(items)
    for folder in sorted({item.folder for item in items}):
        (target.below(folder) if folder else target).make()

    def copied(item: Item) -> Copied:
        done = copy_one(source, target, item)
        told(done.size_bytes)
        return done

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        waiting = [pool.submit(copied, item) for item in items]
        try:
            return [one.result() for one in waiting]
        except BaseException:
            for one in waiting:
                one.cancel()
            raise


def copy_one(source: Durable, target: Durable, item: Item, noted: Copied | None = None) -> Copied:
    """Copy a file; an error if it has another size, or another content than was noted."""
    size, checksum = 0, 0
    folder, name = item.found
    there = source.below(folder) if folder else source
    here = target.below(item.folder) if item.folder else target
    with here.writing(item.name) as stream:
        for block in blocks(there, name):
            size += len(block)
            checksum = zlib.crc32(block, checksum)
            stream.write(block)
        where = there.path(name)
        if item.size_bytes is not None and size != item.size_bytes:
            raise Differs(
                f"the file {where} has {size} bytes, expected {item.size_bytes}; nothing was "
                "changed; restore it from a copy"
            )
        if noted is not None and (size, checksum) != (noted.size_bytes, noted.checksum):
            raise Differs(
                f"the file {where} is not the one that was copied there: its checksum differs; "
                "nothing was started; restore it from another copy of the savepoint"
            )
    return Copied(item.path, size, checksum)


def blocks(folder: Durable, name: str) -> Iterator[bytes]:
    """The content of a file, a part at a time."""
    try:
        with folder.open(name) as stream:
            while block := stream.read(_BLOCK):
                yield block
    except FileNotFoundError:  # some filesystems find that out when they read
        raise missing(folder.path(name)) from None
