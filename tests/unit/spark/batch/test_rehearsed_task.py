"""What a worker of a new executor does: it loads operators, and looks at the checkpoint."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tidegate.spark.batch import rehearsed_task
from tidegate.spark.batch.descriptions import DESCRIPTION
from tidegate.spark.batch.rehearsed_task import load_and_hold
from tidegate.spark.batch.worker import packed
from tidegate.spark.state.files import Durable


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsed_task, "hold_worker", lambda: None)


def blocks() -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"number": [3]})


def test_rows_come_back_where_a_checkpoint_is_not_seen(tmp_path: Path) -> None:
    seen, other = Durable(str(tmp_path / "seen")), Durable(str(tmp_path / "other"))
    seen.make()
    seen.write(DESCRIPTION, b"{}")
    stages = (packed({"any": "operator"}),)
    assert list(load_and_hold(blocks(), stages, (seen,))) == []
    assert list(load_and_hold(blocks(), stages, ())) == []
    (back,) = load_and_hold(blocks(), stages, (seen, other))
    assert back.to_pydict() == {"number": [3]}
    (back,) = load_and_hold(blocks(), stages, (Durable("nfs://nowhere/ck"),))
    assert back.num_rows == 1
