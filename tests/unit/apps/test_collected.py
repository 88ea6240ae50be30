"""Collected rows: all batches in their order, and a replayed one only once."""

from pathlib import Path

import pyarrow as pa

from tidegate.apps.collected import Collected


class Frame:
    """What the sink needs of a DataFrame."""

    def __init__(self, *numbers: int) -> None:
        self._table = pa.table({"number": pa.array(numbers, pa.int64())})

    def toArrow(self) -> pa.Table:  # noqa: N802
        return self._table


def test_rows_are_kept_in_order_and_a_replay_changes_nothing(tmp_path: Path) -> None:
    sink = Collected(tmp_path / "rows")
    assert sink.rows() is None
    for batch_id, frame in ((2, Frame(5)), (10, Frame(6, 7)), (0, Frame(1, 2)), (1, Frame())):
        sink(frame, batch_id)
    sink(Frame(5), 2)
    found = sink.rows()
    assert found is not None
    assert found["number"].to_pylist() == [1, 2, 5, 6, 7]
