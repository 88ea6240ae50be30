"""A whole pipeline on a store that speaks S3's protocol, with a kill -9 of its driver.

Checkpoint, state, channel, records and Spark's own logs are objects; nothing is on a shared disk.
"""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.helpers.places import HELPERS
from tests.helpers.processes import kill_tree, wait_for
from tidegate.recording import read_records
from tidegate.spark.clusters.store import Store, new_bucket
from tidegate.spark.jars.ivy import JarsUnavailable
from tidegate.spark.s3 import client
from tidegate.spark.s3.connector import connector_jars
from tidegate.spark.state import files
from tidegate.spark.state.files import Durable

pytestmark = [pytest.mark.spark, pytest.mark.chaos, pytest.mark.experiment]
FILES = 6
ROWS = 200


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    pytest.importorskip("moto", reason="tests on S3 need the development packages")
    try:
        connector_jars()
    except JarsUnavailable as error:
        pytest.skip(str(error))
    running = Store(tmp_path / "store.log")
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    client._client.cache_clear()
    files._filesystem.cache_clear()
    yield running
    running.close()


def fill(directory: Path) -> dict[str, tuple[int, int]]:
    """Write the input; returns the count and the sum of each key."""
    directory.mkdir()
    chance = random.Random(21)
    truth: dict[str, tuple[int, int]] = {}
    for number in range(FILES):
        rows = [(f"key-{chance.randrange(50)}", chance.randrange(100)) for _ in range(ROWS)]
        for key, value in rows:
            count, total = truth.get(key, (0, 0))
            truth[key] = (count + 1, total + value)
        table = pa.table({"k": [key for key, _ in rows], "v": [value for _, value in rows]})
        pq.write_table(table, directory / f"{number:03d}.parquet")
    return truth


class Driver:
    """A driver in a process of its own."""

    def __init__(self, root: Path, checkpoint: str, name: str) -> None:
        self.log = root / f"log-{name}"
        with self.log.open("wb") as log:
            command = [sys.executable, str(HELPERS / "s3_driver.py"), str(root), checkpoint, name]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ)

    def until(self, condition) -> None:
        assert wait_for(condition, 240, self.process), self.log.read_text()[-4000:]


def test_a_killed_driver_loses_nothing_on_s3(tmp_path: Path, store: Store) -> None:
    truth = fill(tmp_path / "in")
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "wanted").write_text(str(FILES * ROWS))
    checkpoint = f"s3://{new_bucket()}/ck"
    first = Driver(tmp_path, checkpoint, "first")
    try:
        first.until(lambda: len(list(out.glob("*.json"))) >= 2)
    finally:
        kill_tree(first.process)
    second = Driver(tmp_path, checkpoint, "second")
    try:
        second.until((tmp_path / "finished").exists)
    finally:
        kill_tree(second.process)

    expected = {key: {"n": count, "total": total} for key, (count, total) in truth.items()}
    state = tg.read_state(checkpoint, "sums").to_pylist()
    assert {row["k"]: {"n": row["n"], "total": row["total"]} for row in state} == expected
    output: dict[str, dict[str, int]] = {}
    for file in sorted(out.glob("*.json")):
        for row in json.loads(file.read_text()):
            output[row["k"]] = {"n": row["n"], "total": row["total"]}
    assert output == expected
    assert not list(out.glob("differs-*"))
    root = Durable(checkpoint)
    logs = root.below("segments/between/spark")
    assert logs.below("offsets").names() and logs.below("commits").names()
    assert len(read_records(root)) > 1
    for driver in (first, second):
        assert "AWS_SECRET" not in driver.log.read_text()
