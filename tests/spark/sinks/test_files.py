"""Sinks that write files: whenever the driver crashes, the directory has every row once."""

import numpy as np
import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.crash import Crash, crash_after
from tests.helpers.feed import Feed
from tidegate.spark.batch.step import Step
from tidegate.spark.sinks.files import HIDDEN, FileSink
from tidegate.spark.sinks.hadoop import HadoopDirectory

pytestmark = pytest.mark.spark
DDL = "k string, v long"


def rows(seed: int, count: int = 200) -> pa.Table:
    chance = np.random.default_rng(seed)
    names = [f"key-{number}" for number in chance.integers(0, 40, count)]
    return pa.table({"k": names, "v": chance.integers(0, 3, count)})


def listed(table: pa.Table) -> list[tuple]:
    return sorted(zip(*(table[name].to_pylist() for name in ("k", "v")), strict=True))


def start(spark, feed, tmp_path, **options):
    stream = tg.pipeline("copy", feed.stream(spark)).map(
        lambda table: table, name="dealt", tasks=(1, 8)
    )
    flow = stream.to("parquet", path=str(tmp_path / "out"), name="out", **options)
    return flow.start(str(tmp_path / "ck"), tasks=3)


def test_a_crash_between_the_sinks_and_the_commit_leaves_every_row_once(spark, tmp_path):
    feed = Feed(tmp_path / "in", DDL)
    formats = ("parquet", "json", "csv", "orc")

    def start_all(tasks):
        copied = tg.pipeline("copy", feed.stream(spark)).map(
            lambda table: table, name="dealt", tasks=(1, 8)
        )
        for name in formats:
            options = {"header": "true"} if name == "csv" else {}
            copied.to(name, path=str(tmp_path / name), **options)
        return copied.start(str(tmp_path / "ck"), tasks=tasks)

    run = start_all(3)
    crash_after(run, Step.SINKS_WRITTEN, at_batch=1)
    for seed in range(3):
        feed.add(rows(seed))
    with pytest.raises(Exception, match="of batch 1"):
        run.processAllAvailable()
    run.stop()
    before = {name: {path.name for path in (tmp_path / name).iterdir()} for name in formats}
    run = start_all(5)
    try:
        run.processAllAvailable()
        assert run.results()[0].replayed and run.results()[0].plan.batch_id == 1
    finally:
        run.stop()
    for name in formats:
        out = tmp_path / name
        assert len([one for one in before[name] if one.startswith("part-")]) == 2 * 3
        assert read(spark, out, name) == listed(feed.all()), name
        assert before[name] < {path.name for path in out.iterdir()}, "a replay has the same names"
        assert list((out / HIDDEN).iterdir()) == []


def read(spark, out, sink) -> list[tuple]:
    found = spark.read.schema(DDL).option("header", "true").format(sink).load(str(out))
    return listed(found.toArrow())


def test_a_crash_while_files_are_moved_and_a_replay_in_other_tasks(spark, tmp_path, monkeypatch):
    """The worst case: some files are there, and the replay has the rows in fewer others."""
    feed = Feed(tmp_path / "in", DDL)
    run = start(spark, feed, tmp_path)
    whole, moves = HadoopDirectory.move, []

    def move(self, source, target):
        moves.append(target)
        if len(moves) == 3:  # the batch has three files
            raise Crash("while files are moved")
        whole(self, source, target)

    monkeypatch.setattr(HadoopDirectory, "move", move)
    feed.add(rows(0))
    with pytest.raises(Exception, match="while files are moved"):
        run.processAllAvailable()
    run.stop()
    out = tmp_path / "out"
    assert len(list(out.glob("part-*"))) == 2
    (left,) = (out / HIDDEN).iterdir()
    monkeypatch.undo()
    # A source that splits a batch differently, as files do when there are fewer cores.
    write = FileSink.write
    monkeypatch.setattr(
        FileSink, "write", lambda self, frame, attempt: write(self, frame.coalesce(1), attempt)
    )
    run = start(spark, feed, tmp_path)
    try:
        run.processAllAvailable()
    finally:
        run.stop()
    assert read(spark, out, "parquet") == listed(feed.all())
    assert [path.name.split("-")[-2:] for path in out.glob("part-*")] == [
        ["00000", "c000.snappy.parquet"]
    ]
    assert not left.exists()


def test_a_new_checkpoint_adds_to_the_directory_and_folders_are_made(spark, tmp_path):
    feed = Feed(tmp_path / "in", DDL)
    feed.add(rows(0))
    run = start(spark, feed, tmp_path, partition_by="v", compression="gzip")
    crash_after(run, Step.SINKS_WRITTEN, at_batch=1)
    feed.add(rows(1))
    with pytest.raises(Exception, match="of batch 1"):
        run.processAllAvailable()
    run.stop()
    run = start(spark, feed, tmp_path, partition_by="v", compression="gzip")
    run.processAllAvailable()
    run.stop()
    out = tmp_path / "out"
    assert {path.name for path in out.glob("v=*")} == {"v=0", "v=1", "v=2"}
    assert all(path.name.endswith("c000.gz.parquet") for path in out.glob("v=*/part-*"))
    assert read(spark, out, "parquet") == listed(feed.all())
    (tmp_path / "ck").rename(tmp_path / "old")
    run = start(spark, feed, tmp_path, partition_by="v")
    run.processAllAvailable()
    run.stop()
    assert read(spark, out, "parquet") == sorted(listed(feed.all()) * 2)
