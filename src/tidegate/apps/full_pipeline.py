"""A pipeline behind a source that is always full, on a checkpoint of its own.

It can be stopped and started again, and collects the results of all its batches, so that an
experiment sees every batch of every start.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from tidegate.apps.turns import Turn, turns_of
from tidegate.control.shards.route import rerouted
from tidegate.errors import AskedWrongly, TidegateError
from tidegate.pipelines.stream import Stream
from tidegate.spark.batch.checkpoint import Checkpoint
from tidegate.spark.batch.result import BatchResult
from tidegate.spark.master import parse_master
from tidegate.spark.run import Run
from tidegate.spark.start import start
from tidegate.spark.state.files import Durable

_LOOK_EVERY_S = 0.02


Moves = Mapping[str, Mapping[int, int]]
"""For each operator, the new task of each shard that moves."""


class FullPipeline:
    """A started pipeline; `build` makes its stream at every start, `options` are those of `start`.

    It has one segment, and `operator` is the keyed operator whose batches are judged.
    """

    def __init__(
        self,
        spark: SparkSession,
        build: Callable[[], Stream],
        checkpoint: str,
        *,
        operator: str,
        tasks: int,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        cores = parse_master(str(spark.sparkContext.master)).cores
        if cores is not None and tasks > cores:
            raise AskedWrongly(
                f"{tasks} tasks need as many cores, but the master has {cores}; start a session on"
                f" local[{tasks}], or give fewer tasks"
            )
        self.operator = operator
        self.checkpoint = checkpoint
        self.results: list[BatchResult] = []
        self._build = build
        self._options: dict[str, Any] = {"tasks": tasks, **(options or {})}
        self._last = -1
        self.run: Run = self._started()

    def _started(self) -> Run:
        return start(self._build().graph, checkpoint=self.checkpoint, **self._options)

    def again(self, moves: Moves | None = None) -> None:
        """Stop at a batch boundary and start again from the checkpoint.

        Its first batch has moved these shards already: the run may begin it before it could be
        asked for other routes.
        """
        self.stop()
        (segment,) = self.run.segments
        plans = Checkpoint(Durable(self.checkpoint)).segment(segment).below("plans")
        move_in_checkpoint(plans, moves or {})
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
                    f"'{self.run.name}' ran {len(self.results) - before} of {more} batches"
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

    @property
    def rows(self) -> int:
        """Rows that its operator has processed in all batches."""
        return sum(one.rows_in for result in self.results for one in result.of(self.operator))

    def turns(self) -> list[Turn]:
        """The turns of all batches so far."""
        return turns_of(self.results, self.operator)


def move_in_checkpoint(plans: Durable, moves: Moves) -> None:
    """Move shards of a stopped pipeline: the next start continues with the routes of its last plan.

    The batch of that plan is committed, so nothing else will read it.
    """
    names = plans.names()
    if not names or not moves:
        return
    document = plans.read_json(names[-1])
    for operator, shards in moves.items():
        entry = document["operators"][operator]
        entry["route"] = list(rerouted(tuple(entry["route"]), shards, entry["tasks"]))
    plans.write_json(names[-1], document)
