"""The Python blocks of every page run on Spark, from top to bottom, in one namespace a page.

A block that cannot says why (`<!-- not run: ... -->`); `tests/unit/test_code_blocks.py` checks the
names in all of them.
"""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import tidegate as tg
from tests.helpers.blocks import Block, blocks_of
from tests.helpers.pages import PAGES
from tests.spark.conftest import WaitFor

Names = dict[str, Any]


def runnable(page: Path) -> list[Block]:
    return [one for one in blocks_of(page) if one.language == "python" and one.not_run is None]


def clicks(spark: SparkSession) -> DataFrame:
    """Rows with all that the pages speak of."""
    return tg.arrivals(spark, "constant:500").select(
        "*",
        F.col("value").alias("price"),
        F.when(F.col("key") % 3 == 0, "gold").otherwise("free").alias("tier"),
        F.col("key").cast("string").alias("ad"),
        F.col("key").cast("string").alias("customer"),
        F.col("key").cast("string").alias("item"),
        F.lit(0).alias("partition"),
        F.col("seq").alias("offset"),
    )


def kept(frame: DataFrame, batch_id: int) -> None:
    frame.write.format("noop").mode("append").save()


def parse(rows: pa.Table) -> pa.Table:
    return rows.select(["ad", "price", "_weight"])


def simple_flow(spark: SparkSession) -> tg.Stream:
    made = tg.pipeline("page", clicks(spark), arrival="timestamp")
    return made.keyed("per_key", tg.count(), key="key").to(kept)


def in_shop(spark: SparkSession) -> Names:
    rows = clicks(spark)
    return {
        "orders": rows,
        "prices": rows,
        "write_totals": kept,
        "write_failed": kept,
        "write_jumps": kept,
    }


def with_payments(spark: SparkSession) -> Names:
    paid = clicks(spark).select("customer", F.col("value").alias("amount"), "timestamp")
    return {"orders": clicks(spark), "payments": paid, "write_totals": kept}


def with_run(spark: SparkSession) -> Names:
    run = simple_flow(spark).start("page.ckpt", target="2 seconds", cores=(1, 4))
    return {"run": run}


def with_flow(spark: SparkSession) -> Names:
    return {"flow": simple_flow(spark)}


GIVEN: dict[str, Callable[[SparkSession], Names]] = {
    "functions.md": in_shop,
    "joins.md": with_payments,
    "operations.md": with_flow,
    "overload.md": with_flow,
    "page.md": with_flow,
    "runbook.md": with_run,
    "time.md": in_shop,
    "bad-rows.md": in_shop,
    "shedding.md": lambda spark: {"clicks": clicks(spark), "parse": parse},
}
"""What a page speaks of as the reader's own."""
PROGRAMS = ("operations.md",)
"""Pages whose blocks are programs of their own: each ends before the next one begins."""


class Started:
    """The pipelines that a page has started; waiting for one ends with its first rows."""

    def __init__(self, wait_for: WaitFor) -> None:
        self.runs: list[tg.Run] = []
        self.graphs: list[Any] = []
        self._wait_for = wait_for

    def note(self, flow: tg.Stream, run: tg.Run) -> None:
        self.runs.append(run)
        self.graphs.append(flow.graph)

    def await_rows(self, run: tg.Run) -> None:
        def some() -> bool:
            return any(report.rows_in for result in run.results() for report in result.reports)

        self._wait_for(some, next(iter(run.queries.values())))

    def end(self) -> None:
        """End what runs, after its first rows."""
        for run in (one for one in self.runs if one.isActive):
            self.await_rows(run)
            run.stop()

    def await_record(self, run: tg.Run) -> None:
        self._wait_for(lambda: run.loop and run.loop.records, next(iter(run.queries.values())))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, wait_for: WaitFor) -> Iterator[Started]:
    seen = Started(wait_for)
    start = tg.Stream.start

    def noted(flow: tg.Stream, *given: Any, **options: Any) -> tg.Run:
        run = start(flow, *given, **options)
        seen.note(flow, run)
        return run

    def end(run: tg.Run) -> bool:
        seen.await_rows(run)
        run.stop()
        return True

    monkeypatch.setattr(tg.Stream, "start", noted)
    monkeypatch.setattr(tg.Run, "awaitTermination", end)
    level = logging.getLogger("tidegate").level
    yield seen
    logging.getLogger("tidegate").setLevel(level)
    for run in seen.runs:
        run.stop()


def test_the_first_pages_own_function_runs_behind_its_first_block(
    spark: SparkSession, started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who leaves out the second block, which waits for ever, comes to results as well."""
    monkeypatch.chdir(tmp_path)
    (page,) = (one for one in PAGES if one.name == "first-pipeline.md")
    blocks = runnable(page)
    own = next(one for one in blocks if "def largest" in one.text)
    names: Names = {"__name__": "page_own", "tg": tg, "spark": spark}
    for block in (blocks[0], own):
        exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
    assert [run.name for run in started.runs] == ["clicks", "largest"]
    largest = tg.read_state("largest.ckpt", "largest").to_pydict()
    assert len(set(largest["key"])) == len(largest["key"]) > 0


@pytest.mark.parametrize(
    "page", [page for page in PAGES if runnable(page)], ids=lambda page: page.name
)
def test_the_blocks_of_a_page_run(
    page: Path,
    spark: SparkSession,
    started: Started,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A port that somebody else has is no fault of a page."""
    monkeypatch.chdir(tmp_path)
    names: Names = {"__name__": f"page_{page.stem}", "tg": tg, "spark": spark}
    names |= GIVEN.get(page.name, lambda spark: {})(spark)
    for run in started.runs:
        started.await_record(run)
    try:
        for block in runnable(page):
            if page.name in PROGRAMS:
                started.end()
            text = block.text.replace("page=8787", "page=0")
            exec(compile("\n" * (block.line - 1) + text, str(page), "exec"), names)
            flow = names.get("flow")
            if isinstance(flow, tg.Stream) and flow.graph not in started.graphs:
                # A block that only builds a pipeline: its functions are to run as well.
                flow.start(str(tmp_path / f"built{block.line}.ckpt")).awaitTermination()
        for run in (one for one in started.runs if one.isActive):
            started.await_rows(run)
    finally:
        for query in (one for one in names.values() if isinstance(one, StreamingQuery)):
            query.stop()
