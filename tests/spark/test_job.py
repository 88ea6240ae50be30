"""A pipeline as a job: it processes what is there, behind a cut as well, and ends by itself."""

import logging

import pyarrow as pa
import pytest

import tidegate as tg
from tests.helpers.feed import Collected, Feed

pytestmark = pytest.mark.spark


def test_a_job_ends_and_the_next_one_goes_on(spark, tmp_path, caplog):
    feed = Feed(tmp_path / "in", "k long")
    totals, seen = Collected(), Collected()
    checkpoint = str(tmp_path / "ck")

    def run(trigger: str, **options) -> tg.Run:
        counted = tg.pipeline("p", feed.stream(spark)).keyed("n", tg.count(), key="k", shards=4)
        counted.to(totals)
        counted.cut("cut").keyed("seen", tg.count(), key="k", shards=4).to(seen)
        job = counted.start(checkpoint, trigger=trigger, tasks=1, **options)
        assert job.awaitTermination(120)
        assert not job.isActive and job.failure is None
        return job

    for keys in ([1, 2], [1], [3, 1]):
        feed.add(pa.table({"k": keys}))
    with caplog.at_level(logging.INFO, logger="tidegate"):
        job = run("available now")
    assert [len(job.results(name)) >= 1 for name in ("main", "cut")] == [True, True]
    assert len(job.results("main")) == 3, "the read limit of the source holds"
    assert {row["k"]: row["count"] for row in totals.rows()} == {1: 3, 2: 1, 3: 1}
    assert {row["k"]: row["count"] for row in seen.rows()} == {1: 3, 2: 1, 3: 1}
    assert "has processed all that its sources had" in caplog.text
    assert "stopped from outside" not in caplog.text

    for keys in ([1], [2]):
        feed.add(pa.table({"k": keys}))
    job = run("once", target="1 minute", cores=2, warm_up=False)
    assert len(job.results("main")) == 1, "all that is there, in one batch"
    found = {row["k"]: row["count"] for row in tg.read_state(checkpoint, "n").to_pylist()}
    assert found == {1: 4, 2: 2, 3: 1}
    found = {row["k"]: row["count"] for row in tg.read_state(checkpoint, "seen").to_pylist()}
    assert found == {1: 4, 2: 2, 3: 1}
