"""Records on disk: JSON lines, rotated by size, that survive a crash in the middle of a line.

New records go to `records.jsonl`. `records.1.jsonl` is the file before it, `records.2.jsonl` the
one before that. This module is the only one that reads or writes these files.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from tidegate.control.record import Record
from tidegate.errors import AskedWrongly, TidegateError

CURRENT = "records.jsonl"
MOST_BYTES = 8 * 2**20
"""A file is rotated before it grows beyond this size."""
KEPT_FILES = 4
"""How many rotated files are kept."""

_SET_ASIDE = re.compile(r"records\.(\d+)\.jsonl")


class RecordWriter:
    """Appends records to a directory, one line each, unbuffered."""

    def __init__(
        self, directory: str | Path, *, most_bytes: int = MOST_BYTES, kept_files: int = KEPT_FILES
    ) -> None:
        if most_bytes < 1 or kept_files < 0:
            raise AskedWrongly(
                f"Records cannot be kept in {kept_files} older files of {most_bytes} bytes: give "
                "a file size of at least 1 byte and at least 0 older files."
            )
        self._directory = Path(directory)
        self._most_bytes = most_bytes
        self._kept_files = kept_files
        self._file: BinaryIO | None = None
        self._size = 0

    def write(self, record: Record) -> None:
        """Append one record. After a failure such as a full disk, the next call repairs the file
        so that its record starts on a line of its own.
        """
        line = record.to_json().encode() + b"\n"
        file = self._file or self._open()
        if self._size and self._size + len(line) > self._most_bytes:
            file = self._rotate()
        try:
            written = file.write(line)
        except OSError:
            self.close()
            raise
        self._size += written
        if written < len(line):
            self.close()
            raise TidegateError(
                f"Only part of a record could be written to {self._directory / CURRENT}: is the "
                "disk full?"
            )

    def close(self) -> None:
        """Close the file. A later `write` opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> BinaryIO:
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / CURRENT
        if path.exists():
            _mend(path)
        # Unbuffered, so that the operating system has either accepted a record or refused it.
        self._file = path.open("ab", buffering=0)
        self._size = path.stat().st_size
        return self._file

    def _rotate(self) -> BinaryIO:
        self.close()
        # Oldest first: a crash in between leaves a gap in the numbers, but loses no record.
        for number, path in sorted(_set_aside(self._directory).items(), reverse=True):
            if number >= self._kept_files:
                path.unlink()
            else:
                path.replace(self._directory / f"records.{number + 1}.jsonl")
        current = self._directory / CURRENT
        if self._kept_files:
            current.replace(self._directory / "records.1.jsonl")
        else:
            current.unlink()
        return self._open()


@dataclass(frozen=True, slots=True)
class ReadableRecords:
    """The records that could be read, and a description of the lines that could not."""

    records: tuple[Record, ...]
    left_out: tuple[str, ...]
    """One sentence for each kind of line that could not be read."""


def read_records(where: str | Path) -> list[Record]:
    """Read all records of a directory, or of one file, oldest first.

    A last line that a crash cut short is left out. A damaged line, or one of another version,
    raises an error that names its file and line number.
    """
    files = _files(where)
    records = [record for path, content in files for record in _records(path, content)]
    if not records:
        raise _nothing_yet(where)
    return records


def read_readable(where: str | Path) -> ReadableRecords:
    """Read the records that can be read, oldest first, and describe the lines that cannot.

    This is for looking back at a run, where part of its history is better than none. It raises an
    error only when not a single record can be read.
    """
    records: list[Record] = []
    wrong: dict[str, list[int]] = {}
    for path, content in _files(where):
        *lines, tail = content.split(b"\n")
        if _is_whole(tail):
            lines.append(tail)
        elif tail.strip():
            wrong[f"of {path}: cut off by a crash, or still being written"] = [len(lines) + 1]
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                records.append(_record(path, number, line))
            except TidegateError as error:
                reason = str(error.__cause__) if isinstance(error.__cause__, TidegateError) else ""
                wrong.setdefault(f"of {path}: {reason or 'not a record'}", []).append(number)
    left_out = tuple(f"{_lines(numbers)} {what}; left out." for what, numbers in wrong.items())
    if not records and left_out:
        raise TidegateError(
            f"This version of Tidegate cannot read any record in {where} ({left_out[0][:-1]}): use "
            "the version that wrote them."
        )
    if not records:
        raise _nothing_yet(where)
    return ReadableRecords(tuple(records), left_out)


def _lines(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"Line {numbers[0]}"
    return f"{len(numbers)} lines ({numbers[0]} to {numbers[-1]})"


def _nothing_yet(where: str | Path) -> AskedWrongly:
    return AskedWrongly(
        f"There is no record in {where} yet: wait until the run has completed its first tick."
    )


def _files(where: str | Path) -> list[tuple[Path, bytes]]:
    where = Path(where)
    if not where.exists():
        raise AskedWrongly(
            f"{where} does not exist: give the checkpoint directory of a run, or its {CURRENT}."
        )
    files = _read_directory(where) if where.is_dir() else [(where, where.read_bytes())]
    if not files:
        raise AskedWrongly(
            f"There are no records in {where}: give the checkpoint directory of a run with a "
            "target, where they are kept as " + CURRENT + "."
        )
    return files


def _read_directory(directory: Path) -> list[tuple[Path, bytes]]:
    # A run may rotate its files while we read them. Read again until no file changed its name.
    while True:
        before = _places(directory)
        try:
            files = [(path, path.read_bytes()) for path, _ in before]
        except FileNotFoundError:
            continue
        if _places(directory) == before:
            return files


def _places(directory: Path) -> list[tuple[Path, int]]:
    paths = [path for _, path in sorted(_set_aside(directory).items(), reverse=True)]
    current = directory / CURRENT
    places = []
    for path in (*paths, current):
        try:
            places.append((path, path.stat().st_ino))
        except FileNotFoundError:
            continue
    return places


def _set_aside(directory: Path) -> dict[int, Path]:
    matches = ((_SET_ASIDE.fullmatch(path.name), path) for path in directory.iterdir())
    return {int(match[1]): path for match, path in matches if match}


def _records(path: Path, content: bytes) -> Iterator[Record]:
    *lines, tail = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _record(path, number, line)
    if _is_whole(tail):
        yield _record(path, len(lines) + 1, tail)


def _record(path: Path, number: int, line: bytes) -> Record:
    try:
        return Record.from_json(line.decode())
    except TidegateError as error:
        raise TidegateError(
            f"Line {number} of {path} is {error}: read it with the version of Tidegate that wrote "
            "it, or move the file away."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TidegateError(
            f"Line {number} of {path} is not a record: the file is damaged or is not a file of "
            "records; remove the line or give another file."
        ) from error


def _is_whole(tail: bytes) -> bool:
    """Whether a last line without a newline is complete: one that was cut short is not JSON."""
    try:
        return isinstance(json.loads(tail), dict)
    except ValueError:
        return False


def _mend(path: Path) -> None:
    """Complete the last line with a newline, or remove it when a crash cut it short."""
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        start = _start_of_last_line(file, end)
        file.seek(start)
        tail = file.read()
        if tail and _is_whole(tail):
            file.write(b"\n")
        elif tail:
            file.truncate(start)


def _start_of_last_line(file: BinaryIO, end: int, step: int = 2**16) -> int:
    while end:
        start = max(0, end - step)
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
