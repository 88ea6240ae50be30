"""The cache of a running pipeline: below Spark's local directory, private, and gone at the end."""

import stat
from pathlib import Path

import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.feed import Feed

pytestmark = pytest.mark.spark


def test_the_cache_lies_below_sparks_local_directory_and_is_removed(spark, tmp_path, monkeypatch):
    monkeypatch.delenv("TIDEGATE_CACHE", raising=False)
    local = Path(spark.conf.get("spark.local.dir"))
    before = set(local.glob("tidegate-*/*"))
    feed = Feed(tmp_path / "in", "k long")
    flow = tg.pipeline("kept", feed.stream(spark)).keyed("n", tg.count(), key="k", shards=4)
    run = flow.start(str(tmp_path / "ck"), tasks=1)
    try:
        feed.add(pa.table({"k": [1, 2, 2]}))
        run.processAllAvailable()
        (found,) = set(local.glob("tidegate-*/*")) - before
        assert [path.name for path in found.iterdir()] == ["n"]
        assert list((found / "n").glob("*.arrow"))
        for path in (found, found.parent):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
    finally:
        run.stop()
    assert set(local.glob("tidegate-*/*")) <= before
