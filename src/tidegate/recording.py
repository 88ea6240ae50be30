"""Records on disk: JSON lines, rotated by size, that survive a crash in the middle of a line.

New records go to `records.jsonl`. `records.1.jsonl` is the file before it, `records.2.jsonl` the
one before that. Object stores cannot append to a file: there, records are numbered parts,
`records.p0000000001.jsonl` and so on. The first record of every file has the options of the run
(`Record.assembly`), so that they are known as long as any record is. This module is the only one
that reads or writes these files.
"""

import json
import math
import os
import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self, runtime_checkable

from tidegate.control.record import Record
from tidegate.errors import AskedWrongly, TidegateError

CURRENT = "records.jsonl"
MOST_BYTES = 8 * 2**20
"""A file is rotated before it grows beyond this size."""
KEPT_FILES = 4
"""How many rotated files are kept."""

PART_BYTES = 2**20
"""A part is followed by the next one before it grows beyond this size."""
KEPT_PARTS = 40
"""How many parts are kept, the newest one included."""
FLUSH_S = 10.0
"""The newest part is written anew this often."""

_SET_ASIDE = re.compile(r"records\.(\d+)\.jsonl")
_PART = re.compile(r"records\.p(\d{10})\.jsonl")
_CLOSE_S = 10.0
"""How long the end of a run waits for the last records to be written to a store."""


class Recorder(Protocol):
    """Where a control loop writes its records."""

    def write(self, record: Record) -> None:
        """Write one record. It raises if this or an earlier record could not be written."""
        ...

    def close(self) -> None:
        """Write what is left, and let go of files and threads."""
        ...


@runtime_checkable
class Directory(Protocol):
    """A directory of a store that can write whole files only."""

    @property
    def url(self) -> str:
        """Where it is."""
        ...

    def names(self) -> list[str]:
        """The names of its files."""
        ...

    def read(self, name: str) -> bytes:
        """The content of a file."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a whole file; it replaces one of the same name."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        ...


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
        self._assembly: Mapping[str, Any] | None = None
        """The options that a record told last, to be told again in every new file."""

    def write(self, record: Record) -> None:
        """Append one record. After a failure such as a full disk, the next call repairs the file
        so that its record starts on a line of its own.
        """
        self._assembly = record.assembly or self._assembly
        line = record.to_json().encode() + b"\n"
        file = self._file or self._open()
        if self._size and self._size + len(line) > self._most_bytes:
            file = self._rotate()
            line = replace(record, assembly=self._assembly).to_json().encode() + b"\n"
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


class RecordParts:
    """Writes records to a store as numbered parts, in a thread of its own.

    The newest part is written anew every few seconds, until it has its size. The loop never waits
    for the store. While the store fails, the newest records are kept in memory, up to one part, and
    `write` raises what went wrong.
    """

    def __init__(
        self,
        directory: Directory,
        *,
        flush_s: float = FLUSH_S,
        part_bytes: int = PART_BYTES,
        kept_parts: int = KEPT_PARTS,
    ) -> None:
        self._directory = directory
        self._flush_s = flush_s
        self._part_bytes = part_bytes
        self._kept_parts = kept_parts
        self._lock = threading.Lock()
        self._lines: deque[_Line] = deque()
        """Records that are not in the store yet."""
        self._size = 0
        self._failure: Exception | None = None
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._part = b""
        self._number: int | None = None
        """The number of the newest part; None before the store was looked at."""
        self._assembly: Mapping[str, Any] | None = None
        """The options that a record told last, to be told again in every new part."""

    def write(self, record: Record) -> None:
        """Keep one record, which is written within some seconds."""
        with self._lock:
            self._assembly = record.assembly or self._assembly
            self._add([_Line(record.to_json().encode() + b"\n", self._assembly)])
            if self._thread is None:
                self._closing.clear()
                self._thread = threading.Thread(
                    target=self._flushes, name="tidegate-records", daemon=True
                )
                self._thread.start()
            failure = self._failure
        if failure is not None:
            raise TidegateError(
                f"Records could not be written to {self._directory.url}: {failure}"
            ) from failure

    def close(self) -> None:
        """Write the last records, if the store takes them within some seconds."""
        thread, self._thread = self._thread, None
        self._closing.set()
        if thread is not None:
            thread.join(_CLOSE_S)
        if self._failure is not None:
            raise TidegateError(
                f"The last records could not be written to {self._directory.url}: {self._failure}"
            ) from self._failure

    def _add(self, lines: Iterable["_Line"], *, first: bool = False) -> None:
        """Keep lines, before those that are kept already if `first`; the oldest may be dropped."""
        lines = list(lines)
        if first:
            self._lines.extendleft(reversed(lines))
        else:
            self._lines.extend(lines)
        self._size += sum(len(line.text) for line in lines)
        while self._size > self._part_bytes and len(self._lines) > 1:
            self._size -= len(self._lines.popleft().text)

    def _flushes(self) -> None:
        while not self._closing.wait(self._flush_s):
            self._flush()
        self._flush()

    def _flush(self) -> None:
        with self._lock:
            lines, self._lines, self._size = list(self._lines), deque(), 0
        if not lines:
            return
        try:
            self._put(lines)
        except Exception as error:
            with self._lock:
                self._failure = error
                self._add(lines, first=True)
            return
        self._failure = None

    def _put(self, lines: Sequence["_Line"]) -> None:
        fresh = b"".join(line.text for line in lines)
        if self._number is None:
            self._number = max(_parts(self._directory.names()), default=0) + 1
        number, part = self._number, self._part + fresh
        if self._part and len(part) > self._part_bytes:
            number, part = number + 1, fresh
        begun = number != self._number or not self._part
        if begun:
            part = _with_assembly(lines[0]) + fresh[len(lines[0].text) :]
        self._directory.write(part_name(number), part)
        self._number, self._part = number, part
        if begun:
            for old, name in _parts(self._directory.names()).items():
                if old <= number - self._kept_parts:
                    self._directory.remove(name)


@dataclass(frozen=True, slots=True)
class _Line:
    """A record that is to be written."""

    text: bytes
    assembly: Mapping[str, Any] | None
    """The options that were in force at its tick, as far as a record has told them."""


def _with_assembly(first: _Line) -> bytes:
    """The first line of a part, which tells the options of the run."""
    record = Record.from_json(first.text.decode())
    if record.assembly is not None or first.assembly is None:
        return first.text
    return replace(record, assembly=first.assembly).to_json().encode() + b"\n"


def part_name(number: int) -> str:
    """The name of a part."""
    return f"records.p{number:010d}.jsonl"


def _parts(names: Iterable[str]) -> dict[int, str]:
    """The parts among some files by their numbers, oldest first."""
    matches = ((_PART.fullmatch(name), name) for name in names)
    return dict(sorted((int(match[1]), name) for match, name in matches if match))


def has_records(names: Iterable[str]) -> bool:
    """Whether there are records among some files of a directory."""
    return any(n == CURRENT or _SET_ASIDE.fullmatch(n) or _PART.fullmatch(n) for n in names)


@dataclass(frozen=True, slots=True)
class ReadableRecords:
    """The records that could be read, and a description of the lines that could not."""

    records: tuple[Record, ...]
    left_out: tuple[str, ...]
    """One sentence for each kind of line that could not be read."""


def read_records(where: str | Path | Directory) -> list[Record]:
    """Read all records of a directory, of one file or of a store's directory, oldest first.

    A last line that a crash cut short is left out. A damaged line, or one of another version,
    raises an error that names its file and line number.
    """
    files = _files(where)
    records = [record for path, content in files for record in _records(path, content)]
    if not records:
        raise _nothing_yet(where)
    return records


def read_readable(
    where: str | Path | Directory, *, newest_parts: int | None = None
) -> ReadableRecords:
    """Read the records that can be read, oldest first, and describe the lines that cannot.

    This is for looking back at a run, where part of its history is better than none. It raises an
    error only when not a single record can be read. `newest_parts` leaves out older parts of a
    store's directory.
    """
    records: list[Record] = []
    wrong: dict[str, list[int]] = {}
    versions = False
    """Whether there are records of another version."""
    for path, content in _files(where, newest_parts):
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
                cause = error.__cause__
                reason = str(cause) if isinstance(cause, TidegateError) else "not a record"
                versions |= isinstance(cause, TidegateError) and b'"version":' in line
                wrong.setdefault(f"of {path}: {reason}", []).append(number)
    left_out = tuple(f"{_lines(numbers)} {what}; left out." for what, numbers in wrong.items())
    if not records and left_out:
        if versions:
            raise TidegateError(
                f"This version of Tidegate cannot read any record in {_name(where)} "
                f"({left_out[0][:-1]}): use the version that wrote them."
            )
        raise AskedWrongly(
            f"{_name(where)} has no record that can be read ({left_out[0][:-1]}): give the "
            f"checkpoint directory of a run with a target, or its {CURRENT}."
        )
    if not records:
        raise _nothing_yet(where)
    return ReadableRecords(tuple(records), left_out)


class FollowedRecords:
    """The records of a run that may go on: all there are first, then those that are new."""

    def __init__(self, where: str | Path | Directory) -> None:
        self._where = where
        self._file: BinaryIO | None = None
        self._rest = b""
        """The beginning of a line that is still being written."""
        self._last_s = -math.inf

    def all(self) -> ReadableRecords:
        """Those that are there now."""
        if not isinstance(self._where, Directory):
            # Opened first: what is written while we read is found again, and told by its time.
            self._open()
        reading = read_readable(self._where)
        self._last_s = reading.records[-1].measurement.at_s
        return reading

    def fresh(self) -> list[Record]:
        """Those that came since the last call, as far as they can be read."""
        if isinstance(self._where, Directory):
            found = list(read_readable(self._where, newest_parts=2).records)
        else:
            found = self._appended()
        found = [record for record in found if record.measurement.at_s > self._last_s]
        if found:
            self._last_s = found[-1].measurement.at_s
        return found

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _current(self) -> Path:
        where = Path(str(self._where))
        return where / CURRENT if where.is_dir() else where

    def _open(self) -> None:
        self.close()
        self._rest = b""
        try:
            self._file = self._current().open("rb")
        except FileNotFoundError:
            return
        self._file.seek(0, os.SEEK_END)

    def _appended(self) -> list[Record]:
        """What was appended; after a rotation, the rest of the old file and the new one."""
        content = self._rest + (b"" if self._file is None else self._file.read())
        if self._rotated():
            self._open()
            if self._file is not None:
                self._file.seek(0)
                content += b"\n" + self._file.read()
        *lines, self._rest = content.split(b"\n")
        records = []
        for number, line in enumerate(lines, start=1):
            if line.strip():
                with suppress(TidegateError):  # a damaged line, which `explain` describes
                    records.append(_record(self._current(), number, line))
        return records

    def _rotated(self) -> bool:
        """Whether new records go to another file than the one that is open."""
        try:
            now = self._current().stat().st_ino
        except FileNotFoundError:
            return False
        return self._file is None or os.fstat(self._file.fileno()).st_ino != now


def _lines(numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"Line {numbers[0]}"
    return f"{len(numbers)} lines ({numbers[0]} to {numbers[-1]})"


def _nothing_yet(where: str | Path | Directory) -> AskedWrongly:
    return AskedWrongly(
        f"There is no record in {_name(where)} yet: wait until the run has completed its first "
        "tick."
    )


def _name(where: str | Path | Directory) -> str:
    return where.url if isinstance(where, Directory) else str(where)


def _files(
    where: str | Path | Directory, newest_parts: int | None = None
) -> Sequence[tuple[str | Path, bytes]]:
    if isinstance(where, Directory):
        parts = list(_parts(where.names()).values())[-(newest_parts or 0) :]
        if not parts:
            raise AskedWrongly(
                f"There are no records in {where.url}: give the checkpoint of a run with a target."
            )
        return [(f"{where.url}/{name}", where.read(name)) for name in parts]
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
    paths += [
        directory / name for name in _parts(path.name for path in directory.iterdir()).values()
    ]
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


def _records(path: str | Path, content: bytes) -> Iterator[Record]:
    *lines, tail = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _record(path, number, line)
    if _is_whole(tail):
        yield _record(path, len(lines) + 1, tail)


def _record(path: str | Path, number: int, line: bytes) -> Record:
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
