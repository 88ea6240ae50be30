"""Reads a load trace from a CSV file with the header `minute,count` and a row per minute."""

import math
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import AskedWrongly

HEADER = "minute,count"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_trace(path: Path, fewest_rows: int) -> NDArray[np.float64]:
    """Read the counts of consecutive minutes; errors name the wrong line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise AskedWrongly(
            f"The trace {path} cannot be read ({error.strerror}): give a CSV file."
        ) from error
    except UnicodeDecodeError as error:
        raise AskedWrongly(f"The trace {path} is not text: give a CSV file.") from error
    header = lines[0].strip().replace(" ", "").lower() if lines else ""
    if header != HEADER:
        raise AskedWrongly(
            f"The trace {path} begins with '{lines[0][:40] if lines else ''}', but its first line "
            f"must be the header '{HEADER}'."
        )
    counts: list[float] = []
    before: int | None = None
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        counts.append(_count(line, number, path))
        minute = _minute(line.split(",")[0].strip(), number, path)
        if before is not None and minute != before + 1:
            raise AskedWrongly(f"Line {number} of {path} {_out_of_order(before, minute)}")
        before = minute
    if len(counts) < fewest_rows:
        raise AskedWrongly(
            f"The trace {path} has {len(counts)} rows, but the forecaster needs at least "
            f"{fewest_rows}: give a longer trace."
        )
    return np.array(counts)


def _minute(text: str, number: int, path: Path) -> int:
    """The number of a minute: as it is written, or since the epoch if it is an ISO time."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.second or at.microsecond:
        raise AskedWrongly(
            f"Line {number} of {path} has the minute '{text[:40]}', but a minute is a whole "
            "number, or a time such as 2026-01-31T09:05 without seconds."
        )
    return round((at.replace(tzinfo=at.tzinfo or UTC) - _EPOCH).total_seconds()) // 60


def _out_of_order(before: int, minute: int) -> str:
    """What is wrong with a minute that is not the one after the last, and what to do."""
    if minute > before + 1:
        missing = minute - before - 1
        return (
            f"leaves out {missing} minutes before it: sort the rows by minute, or add a row with a "
            "count for each minute that is missing."
        )
    if minute == before:
        return "repeats the minute before it: add up the counts of a minute."
    return "goes back in time: sort the rows by minute."


def _count(line: str, number: int, path: Path) -> float:
    cells = line.split(",")
    if len(cells) != 2:
        raise AskedWrongly(
            f"Line {number} of {path} has {len(cells)} columns, but '{HEADER}' has two: fix it."
        )
    text = cells[1].strip()
    try:
        count = float(text)
    except ValueError:
        count = math.nan
    if not math.isfinite(count):
        raise AskedWrongly(
            f"Line {number} of {path} has the count '{text}', but a count must be a number of at "
            "least 0."
        )
    if count < 0:
        raise AskedWrongly(
            f"Line {number} of {path} has the count {text}, but a count cannot be negative."
        )
    return count
