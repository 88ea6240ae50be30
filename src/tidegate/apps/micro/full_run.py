"""The micro-benchmark behind a source that is always full, with a fixed number of tasks."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from tidegate.apps.full_pipeline import FullPipeline
from tidegate.apps.full_source import full_source, value_of
from tidegate.apps.micro.application import CALCULATOR, micro_stream
from tidegate.apps.micro.options import MicroOptions
from tidegate.pipelines.stream import Stream, pipeline
from tidegate.pipelines.task_bounds import Tasks
from tidegate.spark.state.read import read_state


class FullRun(FullPipeline):
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
        options: Mapping[str, Any] | None = None,
        generator_tasks: Tasks = None,
    ) -> None:
        def build() -> Stream:
            rows = full_source(
                spark,
                micro.distribution,
                seed=seed,
                batch_rows=batch_rows,
                first_rows=micro.keys if micro.fill else 0,
            )
            return micro_stream(
                pipeline("micro", rows, arrival="timestamp"),
                micro,
                seed=seed,
                row_s=micro.row_s,
                generator_tasks=generator_tasks,
            )

        self._seed = seed
        super().__init__(
            spark,
            build,
            str(directory / "checkpoint"),
            operator=CALCULATOR,
            tasks=tasks,
            options=options,
        )

    def exactly_once(self) -> bool:
        """Whether the state of the stopped run has every row of its batches once.

        Counts must add up to the rows, and sums to the values of the rows 0, 1, 2, ... of the
        source, which are exact.
        """
        rows = self.rows
        state = read_state(self.checkpoint, CALCULATOR).select(["count", "total"])
        values = pc.sum(value_of(np.arange(rows), self._seed)).as_py() or 0.0
        return bool(
            pc.sum(state["count"]).as_py() == rows and pc.sum(state["total"]).as_py() == values
        )
