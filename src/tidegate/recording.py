"""Records on disk: JSON lines, rotated by size, that survive a crash in the middle of a line.

`records.jsonl` is written; `records.1.jsonl` is the one before it, `records.2.jsonl` the one before
that. Whatever writes records and whatever reads them meet here, and nowhere else.
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
"""A file is set aside before it grows beyond this."""
KEPT_FILES = 4
"""How many files that were set aside are kept."""

_SET_ASIDE = re.compile(r"records\.(\d+)\.jsonl")


class RecordWriter:
    """Appends records to a directory, a line at a time, each handed to the system at once."""

    def __init__(
        self, directory: str | Path, *, most_bytes: int = MOST_BYTES, kept_files: int = KEPT_FILES
    ) -> None:
        if most_bytes < 1 or kept_files < 0:
            raise AskedWrongly(
                f"Records cannot be kept in {kept_files} older files of {most_bytes} bytes: give "
                "at least 1 byte and 0 files."
            )
        self._directory = Path(directory)
        self._most_bytes = most_bytes
        self._kept_files = kept_files
        self._file: BinaryIO | None = None
        self._size = 0

    def write(self, record: Record) -> None:
        """Keep one record. After a failure (a full disk) the next call starts on a whole line."""
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
                f"A record was cut off in {self._directory / CURRENT}: is the disk full?"
            )

    def close(self) -> None:
        """Let go of the file; a later `write` opens it again."""
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
        # Unbuffered, so that a record is either on its way to the disk or was refused.
        self._file = path.open("ab", buffering=0)
        self._size = path.stat().st_size
        return self._file

    def _rotate(self) -> BinaryIO:
        self.close()
        # The oldest first: a crash in between leaves a gap in the numbers, and nothing is lost.
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
class Reading:
    """What could be read, and what could not."""

    records: tuple[Record, ...]
    left_out: tuple[str, ...]
    """One sentence for each kind of line that is not among the records."""


def read_records(where: str | Path) -> list[Record]:
    """All records of a directory, or of one file, oldest first.

    A last line that a crash cut off is left out; a line that is damaged, or of another version, is
    refused with its place.
    """
    files = _files(where)
    records = [record for path, content in files for record in _records(path, content)]
    if not records:
        raise _nothing_yet(where)
    return records


def read_readable(where: str | Path) -> Reading:
    """The records that can be read, oldest first, and a sentence about the lines that cannot.

    For looking back at a run, where half of the story is better than none. Refused only when there
    is no record left to tell of.
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
                told = str(error.__cause__) if isinstance(error.__cause__, TidegateError) else ""
                wrong.setdefault(f"of {path}: {told or 'not a record'}", []).append(number)
    left_out = tuple(f"{_lines(numbers)} {what}; left out." for what, numbers in wrong.items())
    if not records and left_out:
        raise TidegateError(
            f"There is no record in {where} that this Tidegate can read ({left_out[0][:-1]}): read "
            "them with the Tidegate that wrote them."
        )
    if not records:
        raise _nothing_yet(where)
    return Reading(tuple(records), left_out)


def _lines(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"Line {numbers[0]}"
    return f"{len(numbers)} lines ({numbers[0]} to {numbers[-1]})"


def _nothing_yet(where: str | Path) -> AskedWrongly:
    return AskedWrongly(
        f"There is no record in {where} yet: wait for the first tick of the run to end."
    )


def _files(where: str | Path) -> list[tuple[Path, bytes]]:
    where = Path(where)
    if not where.exists():
        raise AskedWrongly(
            f"There is no {where}: name the checkpoint directory of a run, or its {CURRENT}."
        )
    files = _read_directory(where) if where.is_dir() else [(where, where.read_bytes())]
    if not files:
        raise AskedWrongly(
            f"There are no records in {where}: name the checkpoint directory of a run that has a "
            "target, where they are kept as " + CURRENT + "."
        )
    return files


def _read_directory(directory: Path) -> list[tuple[Path, bytes]]:
    # A run may rotate its files while they are read: read again until they kept their places.
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
            f"Line {number} of {path} is {error}: read it with the Tidegate that wrote it, or move "
            "the file away."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TidegateError(
            f"Line {number} of {path} is not a record: the file is damaged or is something else; "
            "remove the line or name another file."
        ) from error


def _is_whole(tail: bytes) -> bool:
    """Whether a last line without its end is a record nevertheless; one cut off is no JSON."""
    try:
        return isinstance(json.loads(tail), dict)
    except ValueError:
        return False


def _mend(path: Path) -> None:
    """End the last line, or take it away when a crash cut it off."""
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
