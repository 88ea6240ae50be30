"""The micro-benchmark behind a source that is always full, with a fixed number of tasks.

It can be stopped and started again, and collects the results of all its batches.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from tidegate.apps.micro.application import CALCULATOR, micro_stream
from tidegate.apps.micro.full_source import full_source, value_of
from tidegate.apps.micro.options import MicroOptions
from tidegate.apps.micro.turns import Turn, turns_of
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.pipelines.stream import pipeline
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.master import parse_master
from tidegate.spark.run import Run
from tidegate.spark.start import start
from tidegate.spark.state.read import read_state

_LOOK_EVERY_S = 0.02


class FullRun:
    """A pipeline on a checkpoint of its own; `options` are those of `start`."""

    def __init__(
        self,
        spark: SparkSession,
        micro: MicroOptions,
        directory: Path,
        *,
        tasks: int,
        batch_rows: int,
        seed: int,
        options: dict[str, Any] | None = None,
    ) -> None:
        cores = parse_master(str(spark.sparkContext.master)).cores
        if cores is not None and tasks > cores:
            raise AskedWrongly(
                f"{tasks} tasks need as many cores, but the master has {cores}; start a session on"
                f" local[{tasks}], or give fewer tasks"
            )
        self._spark, self._micro, self._seed = spark, micro, seed
        self._batch_rows = batch_rows
        self._checkpoint = str(directory / "checkpoint")
        self._options = {"tasks": tasks, **(options or {})}
        self._last = -1
        self.results: list[BatchResult] = []
        self.run: Run = self._started()

    def _started(self) -> Run:
        rows = full_source(
            self._spark,
            self._micro.distribution,
            seed=self._seed,
            batch_rows=self._batch_rows,
            first_rows=self._micro.keys if self._micro.fill else 0,
        )
        stream = micro_stream(
            pipeline("micro", rows, arrival="timestamp"),
            self._micro,
            seed=self._seed,
            stretch=True,
            generator_tasks=None,
        )
        return start(stream.graph, checkpoint=self._checkpoint, **self._options)

    def again(self) -> None:
        """Stop at a batch boundary and start again from the checkpoint."""
        self.stop()
        self.run = self._started()

    def stop(self) -> None:
        """Stop at a batch boundary, and collect the last results."""
        self.run.stop()
        self._collect()

    def await_batches(self, more: int, patience_s: float = 600.0) -> list[BatchResult]:
        """Wait until so many more batches have ended; returns the new ones."""
        before = len(self.results)
        until = time.monotonic() + patience_s
        while len(self.results) < before + more:
            if self.run.awaitTermination(_LOOK_EVERY_S) or time.monotonic() > until:
                raise TidegateError(
                    f"the micro-benchmark ran {len(self.results) - before} of {more} batches"
                )
            if self.run.loop is not None and self.run.loop.failure is not None:
                raise TidegateError(f"the control loop failed: {self.run.loop.failure}")
            self._collect()
        return self.results[before:]

    def _collect(self) -> None:
        for result in self.run.results():
            if result.plan.batch_id > self._last:
                self.results.append(result)
                self._last = result.plan.batch_id

    def turns(self) -> list[Turn]:
        """The turns of all batches so far."""
        return turns_of(self.results, CALCULATOR)

    def exactly_once(self) -> bool:
        """Whether the state of the stopped run has every row of its batches once.

        Counts must add up to the rows, and sums to the values of the rows 0, 1, 2, ... of the
        source, which are exact.
        """
        rows = sum(one.rows_in for result in self.results for one in result.of(CALCULATOR))
        state = read_state(self._checkpoint, CALCULATOR).select(["count", "total"])
        values = pc.sum(value_of(np.arange(rows), self._seed)).as_py() or 0.0
        return bool(
            pc.sum(state["count"]).as_py() == rows and pc.sum(state["total"]).as_py() == values
        )
