"""The bytes of a piece in its file: written with their place and checksum, read and checked alone.

A piece is one record batch, so it is one message of the Arrow file. The manifest has where the
message lies and its CRC-32. A piece can therefore be fetched by one range read, and its bytes are
checked before anything interprets them, without the rest of the file. (A checksum over the columns'
buffers would leave out the message's own header, and would need the buffers parsed first.)
"""

import uuid
import zlib
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tidegate.spark.state.version import Piece


@dataclass(frozen=True, slots=True)
class PieceBytes:
    """Where a piece lies in its file, and the CRC-32 of its bytes there."""

    offset: int
    length: int
    checksum: int


def write_pieces(stream: pa.NativeFile, pieces: list[pa.RecordBatch]) -> list[tuple[int, int]]:
    """Write an Arrow file with these pieces; return the offset and the length of each."""
    found = []
    with pa.ipc.new_file(stream, pieces[0].schema) as writer:
        for piece in pieces:
            writer.write_batch(piece)
            length = pa.ipc.get_record_batch_size(piece)
            found.append((stream.tell() - length, length))
    return found


def described(content: pa.Buffer, spans: list[tuple[int, int]]) -> list[PieceBytes]:
    """The pieces of a file's content that lie at these offsets and lengths."""
    return [
        PieceBytes(offset, length, zlib.crc32(content.slice(offset, length)))
        for offset, length in spans
    ]


def bytes_at(content: pa.Buffer, piece: Piece) -> pa.Buffer:
    """The bytes of a piece in its file's content, as many as there are; all if it has no place."""
    if piece.offset is None or piece.length is None:
        return content
    offset = min(piece.offset, content.size)
    return content.slice(offset, min(piece.length, content.size - offset))


def intact(content: pa.Buffer, piece: Piece) -> bool:
    """Whether these are the bytes of the piece."""
    return content.size == piece.length and zlib.crc32(content) == piece.checksum


def record_batch(content: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a piece; its columns are views of the bytes."""
    return pa.ipc.read_record_batch(pa.ipc.read_message(content), schema)


def mapped(path: Path) -> pa.Buffer:
    """The content of a local file, mapped and not read; it stays mapped while it is referenced."""
    with pa.memory_map(str(path)) as stream:
        return stream.read_buffer()


def write_whole(path: Path, content: pa.Buffer) -> None:
    """Write a local file that appears with its whole content; nothing is left if that fails."""
    aside = aside_of(path)
    try:
        with aside.open("wb") as stream:
            stream.write(content)
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise


def aside_of(path: Path) -> Path:
    """The temporary name under which a file is written before it appears."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
