"""Checkpoints that were damaged, mixed up, or are in use: refused at the start, by a sentence."""

import shutil

import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.feed import Collected, Feed
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.spark.owner.epochs import Epochs
from tidegate.spark.owner.process import Process
from tidegate.spark.state.files import Durable

pytestmark = pytest.mark.spark


def rows(first: int) -> pa.Table:
    return pa.table({"k": [f"k{n % 5}" for n in range(100)], "v": list(range(first, first + 100))})


def start(feed: Feed, spark, tmp_path, sink=None):
    flow = tg.pipeline("shop", feed.stream(spark)).keyed("n", tg.count(), key="k", shards=8)
    return flow.to(sink or Collected()).start(str(tmp_path / "ck"), tasks=2)


@pytest.fixture
def used(spark, tmp_path) -> Feed:
    """A checkpoint after one batch, and another batch that waits."""
    feed = Feed(tmp_path / "in", "k string, v long")
    feed.add(rows(0))
    run = start(feed, spark, tmp_path)
    run.processAllAvailable()
    run.stop()
    feed.add(rows(100))
    return feed


def test_state_whose_manifests_are_lost_is_not_reset(spark, tmp_path, used):
    shutil.rmtree(tmp_path / "ck" / "segments" / "main" / "manifests")
    with pytest.raises(TidegateError, match=r"has committed batch 0, but its manifest .* missing"):
        start(used, spark, tmp_path)


def test_offsets_that_are_lost_do_not_start_the_state_again(spark, tmp_path, used):
    shutil.rmtree(tmp_path / "ck" / "segments" / "main" / "spark")
    with pytest.raises(TidegateError, match=r"is that after batch 0, but Spark's offsets .* -1"):
        start(used, spark, tmp_path)


def test_a_segment_that_is_lost_as_a_whole_does_not_start_again(spark, tmp_path, used):
    shutil.rmtree(tmp_path / "ck" / "segments")
    with pytest.raises(TidegateError, match=r"segments/main is missing or empty, but .*state/n"):
        start(used, spark, tmp_path)
    assert not (tmp_path / "ck" / "segments").exists(), "a copy can be put in its place"


def test_a_checkpoint_below_a_file_is_refused_by_a_sentence(spark, tmp_path, used):
    (tmp_path / "file").write_text("")
    flow = tg.pipeline("shop", used.stream(spark)).keyed("n", tg.count(), key="k")
    with pytest.raises(TidegateError, match="cannot be read or written"):
        flow.start(str(tmp_path / "file" / "ck"))


def test_a_checkpoint_that_another_driver_uses_is_refused(spark, tmp_path, used, monkeypatch):
    epochs = Epochs(Durable(str(tmp_path / "ck")).below("owner"))
    other = epochs.make(epochs.newest(), Process("elsewhere", 7, "another machine", "1"), 0.0)
    beats = iter(range(1000))
    plain = Epochs.last_beat

    def alive(self, epoch):
        if epoch == other:
            epochs.beat(other, next(beats))
        return plain(self, epoch)

    monkeypatch.setattr(Epochs, "last_beat", alive)
    with pytest.raises(AskedWrongly, match="in use by process 7 on elsewhere since"):
        start(used, spark, tmp_path)


def test_a_driver_that_lost_its_checkpoint_calls_no_sink_and_ends(spark, tmp_path):
    feed, sink = Feed(tmp_path / "in", "k string, v long"), Collected()
    feed.add(rows(0))
    run = start(feed, spark, tmp_path, sink)
    run.processAllAvailable()
    epochs = Epochs(Durable(str(tmp_path / "ck")).below("owner"))
    assert epochs.make(epochs.newest(), Process("elsewhere", 7, "another machine", "1"), 0.0)
    feed.add(rows(100))
    with pytest.raises(TidegateError, match="process 7 on elsewhere has taken over the checkpoint"):
        run.awaitTermination(60)
    assert set(sink.batches) == {0}
    assert not (tmp_path / "ck" / "segments" / "main" / "manifests" / "0000000001.json").exists()


def test_a_segment_without_state_is_not_run_again_either(spark, tmp_path):
    feed, sink = Feed(tmp_path / "in", "k string, v long"), Collected()
    feed.add(rows(0))

    def flow():
        return tg.pipeline("plain", feed.stream(spark)).map(lambda t: t, name="same").to(sink)

    run = flow().start(str(tmp_path / "ck"))
    run.processAllAvailable()
    run.stop()
    (tmp_path / "ck" / "segments" / "main" / "spark" / "commits" / "0").unlink()
    run = flow().start(str(tmp_path / "ck"))
    run.processAllAvailable()
    run.stop()
    assert sink.tries[0] == 1
