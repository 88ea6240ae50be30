"""Kept rows are noted once, however often a task runs."""

from pathlib import Path

import pyarrow as pa

from tidegate.apps.planetlab.noted_rows import NotedRows


def rows(*numbers: int, nullable: bool = True) -> pa.Table:
    """Rows as a task has them; while nothing is shed, Spark knows that no weight is null."""
    schema = pa.schema(
        [
            pa.field("key", pa.int64()),
            pa.field("value", pa.float64()),
            pa.field("seq", pa.int64()),
            pa.field("timestamp", pa.timestamp("us", tz="UTC")),
            pa.field("_weight", pa.float64(), nullable=nullable),
        ]
    )
    columns = [
        [number % 3 for number in numbers],
        [0.5] * len(numbers),
        list(numbers),
        [10 * number for number in numbers],
        [2.0] * len(numbers),
    ]
    return pa.table(dict(zip(schema.names, columns, strict=True)), schema=schema)


def test_a_task_that_runs_twice_notes_its_rows_once(tmp_path: Path) -> None:
    kept = NotedRows(tmp_path / "kept")
    kept.note(rows(5, 6))
    kept.note(rows(5, 6))
    kept.note(rows(1, nullable=False))
    found = kept.rows()
    assert found is not None
    assert found["seq"].to_pylist() == [1, 5, 6]
    assert found["key"].to_pylist() == [1, 2, 0]


def test_a_file_that_was_not_finished_does_not_count(tmp_path: Path) -> None:
    kept = NotedRows(tmp_path)
    (tmp_path / "half.begun").write_bytes(b"ARROW")
    assert kept.rows() is None
