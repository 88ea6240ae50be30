"""Reads a load trace from a CSV file with the header `minute,count` and a row per minute."""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import AskedWrongly

HEADER = "minute,count"


def read_trace(path: Path, fewest_rows: int) -> NDArray[np.float64]:
    """Read the counts, in file order. Errors name the wrong line, or the number of rows needed."""
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
    counts = [
        _count(line, number, path) for number, line in enumerate(lines[1:], start=2) if line.strip()
    ]
    if len(counts) < fewest_rows:
        raise AskedWrongly(
            f"The trace {path} has {len(counts)} rows, but the forecaster needs at least "
            f"{fewest_rows}: give a longer trace."
        )
    return np.array(counts)


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
