"""The rows of a micro-batch behind a full source, which may change while the pipeline runs.

The source plans its batches in a process of its own on the driver's machine. So the number is in a
file there, which the source reads before every batch.
"""

from pathlib import Path

from tidegate.errors import AskedWrongly, TidegateError


def set_batch_rows(file: Path, rows: int) -> None:
    """Let the batches that are planned from now on have so many rows."""
    if rows < 1:
        raise AskedWrongly(f"{rows} rows in a micro-batch are not possible; give 1 or more")
    new = file.with_suffix(".new")
    new.write_text(str(rows), encoding="utf-8")
    new.replace(file)  # a reader finds the old number or the new one, never half of it


def batch_rows_of(file: Path) -> int:
    """How many rows the next batch is to have."""
    try:
        return int(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TidegateError(
            f"the rows of the next micro-batch cannot be read from {file}: {error}"
        ) from error
