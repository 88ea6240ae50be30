"""The warm-up before the first row: what it does, what it must not do, and what it cannot break."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tidegate as tg
import tidegate.spark.start as starting
from tests.helpers.places import HELPERS
from tidegate.spark import warm_up as warming
from tidegate.spark.batch.rehearsal import Rehearsal

DRIVER = HELPERS / "cold_driver.py"
OPTIONS: dict[str, Any] = {"target": "20 seconds", "cores": (1, 2)}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine may take as long as it likes."""
    monkeypatch.setattr(warming, "PATIENCE_S", 300.0)


def test_a_cold_start_with_a_light_load_does_not_scale_out(tmp_path: Path) -> None:
    """In a process of its own: the target is one that a first batch on a cold JVM misses."""
    log = tmp_path / "log"
    with log.open("wb") as output:
        done = subprocess.run(
            [sys.executable, str(DRIVER), str(tmp_path)],
            stdout=output,
            stderr=output,
            env={**os.environ, "TIDEGATE_SPARK_LOG": str(tmp_path / "spark.log")},
            check=False,
        )
    assert done.returncode == 0, log.read_text()[-3000:]
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["asked"] == [1]
    assert any(note.startswith("warmed up for ") for note in report["first_notes"])
    assert not any("warmed up" in note for note in report["later_notes"])
    assert report["counted"] == report["rows"] > 0


def listed(place: Path) -> dict[str, bytes]:
    """All files below a directory, with what is in them."""
    return {str(one): one.read_bytes() for one in place.rglob("*") if one.is_file()}


class Watched:
    """Runs the warm-up of a start, and looks at what it has changed."""

    def __init__(self, spark: SparkSession, place: Path, calls: Path) -> None:
        self._spark, self._place, self._calls = spark, place, calls
        self.before: Any = None
        self.after: Any = None

    def _look(self) -> Any:
        return (
            [listed(self._place / name) for name in ("state", "segments", "channels")],
            listed(self._calls),
            [query.name for query in self._spark.streams.active],
            SparkSession.getActiveSession() is self._spark,
            self._spark.conf.get("spark.sql.adaptive.enabled"),
        )

    def __call__(self, *given: Any) -> warming.WarmUp:
        self.before = self._look()
        done = warming.warm_up(*given)
        self.after = self._look()
        return done


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
def test_it_changes_nothing_and_calls_no_function(
    spark, tmp_path, wait_for, monkeypatch, again: bool
) -> None:
    """Neither with the throw-away query, nor where the application is warm already."""
    application = str(spark.sparkContext.applicationId)
    monkeypatch.setattr(warming, "_warmed", {application} if again else set())
    calls = tmp_path / "calls"
    calls.mkdir()

    def noted(table):
        (calls / "map").touch()
        return table

    def kept(rows, state):
        (calls / "keyed").touch()
        return tg.Update()

    stream = tg.arrivals(spark, "constant:20", partitions=2)
    flow = (
        tg.pipeline("noted", stream, arrival="timestamp")
        .map(noted, name="pass")
        .keyed("kept", kept, key="key", shards=8, state="n long", output="key long")
        .to(lambda frame, batch_id: (calls / "sink").touch() or frame.count())
    )
    place = tmp_path / "ck"
    watched = Watched(spark, place, calls)
    monkeypatch.setattr(starting, "warm_up", watched)
    run = flow.start(str(place), **OPTIONS)
    try:
        assert run.warmed is not None and run.warmed.failed is None
        assert watched.after == watched.before
        assert watched.after[1] == {} and watched.after[3]
        wait_for(lambda: len(listed(calls)) == 3 and run.loop.records, run.queries["main"])
    finally:
        run.stop()
    assert run.loop.records[0].decision.notes[0] == run.warmed.words


def test_every_kind_of_operator_can_be_rehearsed(spark, tmp_path) -> None:
    """Two sources, shedding, a merge, a map with tasks, a cut, a window, both kinds of sinks."""
    first, second = (tg.arrivals(spark, "constant:5", partitions=1, seed=seed) for seed in (1, 2))
    source = tg.pipeline("all", first, arrival="timestamp").shed()
    other = source.source(second, name="second", arrival="timestamp")
    both = source.merge(other).map(lambda table: table, name="same", tasks=(1, 2))
    both.keyed("top", tg.top_n(3, by="value"), key="key").to(lambda frame, batch_id: None)
    windows = tg.window(tg.count(), every="5 seconds")
    flow = both.cut("between").keyed("windows", windows, key="key").to("noop")
    run = flow.start(str(tmp_path / "ck"), **OPTIONS)
    try:
        assert run.warmed is not None
        assert run.warmed.failed is None
    finally:
        run.stop()


@pytest.mark.parametrize("how", ["fails", "hangs"])
def test_a_warm_up_cannot_break_a_start(spark, tmp_path, wait_for, monkeypatch, how: str) -> None:
    def broken(self: Rehearsal, *given: Any) -> None:
        raise RuntimeError("no such operator")

    if how == "fails":
        monkeypatch.setattr(Rehearsal, "run", broken)
        why = "RuntimeError: no such operator"
    else:
        monkeypatch.setattr(warming, "PATIENCE_S", 0.0)
        why = "it took longer than 0 s"
    monkeypatch.setattr(warming, "_warmed", set())
    stream = tg.arrivals(spark, "constant:20", partitions=1)
    flow = tg.pipeline("broken", stream, arrival="timestamp").keyed("n", tg.count(), key="key")
    run = flow.start(str(tmp_path / "ck"), **OPTIONS)
    try:
        assert run.warmed is not None and run.warmed.failed == why
        wait_for(lambda: len(run.results()) >= 2 and run.loop.records, run.queries["main"])
    finally:
        run.stop()
    assert why in run.loop.records[0].decision.notes[0]
    rows = sum(r.rows_in for result in run.results() for r in result.of("n"))
    assert sum(tg.read_state(str(tmp_path / "ck"), "n")["count"].to_pylist()) == rows


def test_it_can_be_left_out(spark, tmp_path) -> None:
    stream = tg.arrivals(spark, "constant:20", partitions=1)
    flow = tg.pipeline("plain", stream, arrival="timestamp").keyed("n", tg.count(), key="key")
    run = flow.start(str(tmp_path / "ck"), warm_up=False, **OPTIONS)
    try:
        assert run.warmed is None
        assert all(part.rehearsal is None for part in run.segments.values())
    finally:
        run.stop()
